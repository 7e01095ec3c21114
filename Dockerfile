# Two images from one base, built by `make image` (which fills build/docker first; see docker/stage.py):
#
#   barnabas-broker      Debian's Python and the project's wheel; no Java, no Spark
#   barnabas-zookeeper   a JRE and the few jars that ZooKeeper needs

FROM debian:bookworm-slim AS python
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-minimal python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/man

FROM python AS wheels
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv
COPY build/docker/wheels /wheels
RUN python3 -m venv --without-pip /opt/barnabas \
    && python3 -m venv /tmp/tools \
    && /tmp/tools/bin/pip --python /opt/barnabas/bin/python install --no-index --no-cache-dir \
        --find-links /wheels "$(ls /wheels/barnabas-*.whl)[broker]" \
    && find /opt/barnabas -name tests -type d -prune -exec rm -rf {} +

FROM python AS broker
COPY --from=wheels /opt/barnabas /opt/barnabas
ENV PATH=/opt/barnabas/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --system --create-home barnabas \
    && mkdir -p /var/lib/barnabas \
    && chown barnabas /var/lib/barnabas
USER barnabas
VOLUME /var/lib/barnabas
ENV BARNABAS_LOG_DIRS=/var/lib/barnabas
ENTRYPOINT ["barnabas"]
CMD ["broker", "run", "--env"]

FROM debian:bookworm-slim AS zookeeper
# The JRE's package needs a directory that slim images lack.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/man
COPY build/docker/zookeeper /opt/zookeeper
RUN useradd --system --create-home zookeeper \
    && mkdir -p /var/lib/zookeeper \
    && chown zookeeper /var/lib/zookeeper
USER zookeeper
VOLUME /var/lib/zookeeper
EXPOSE 2181
CMD ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", \
     "-Dlog4j2.configurationFile=/opt/zookeeper/log4j2.properties", "-Dlog4j2.disableJmx=true", \
     "-cp", "/opt/zookeeper/jars/*", \
     "org.apache.zookeeper.server.ZooKeeperServerMain", "/opt/zookeeper/zoo.cfg"]
