# The images, built from this checkout alone; `docker-compose.yml` names the stages.
#
#   broker      Debian's Python and this project; no Java, no Spark
#   zookeeper   a JRE and the jars of Debian's ZooKeeper that a server loads
#   faults      tools that cut networks and fill disks, for tests that break the cluster
#   spark       a JRE, PySpark and this project's data source
#
# What changes seldom comes first: a change of the code downloads nothing again.

ARG BASE=debian:bookworm-slim

FROM ${BASE} AS python
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/man

FROM python AS builder
# A base that brings its own certificate authorities keeps them.
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv binutils \
    && { test -s /etc/ssl/certs/ca-certificates.crt \
        || apt-get install -y --no-install-recommends ca-certificates; } \
    && rm -rf /var/lib/apt/lists/*
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_DEFAULT_TIMEOUT=120
RUN python3 -m venv /tmp/tools && /tmp/tools/bin/pip install --upgrade pip

FROM builder AS dependencies
RUN python3 -m venv --without-pip /opt/barnabas
WORKDIR /src
COPY pyproject.toml docker/requirements.py ./
RUN python3 requirements.py build >build.txt && python3 requirements.py broker >broker.txt \
    && /tmp/tools/bin/pip install --requirement build.txt \
    && /tmp/tools/bin/pip --python /opt/barnabas/bin/python install --requirement broker.txt \
    && find /opt/barnabas -name tests -type d -prune -exec rm -rf {} + \
    && find /opt/barnabas -name '*.so' -exec strip --strip-unneeded {} +

FROM dependencies AS project
COPY README.md LICENSE ./
COPY proto proto
COPY common common
COPY client client
COPY controller controller
COPY broker broker
COPY tools tools
COPY simulator simulator
COPY spark spark
RUN /tmp/tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /tmp/tools/bin/pip --python /opt/barnabas/bin/python install --no-deps --no-index /wheels/*.whl

FROM python AS broker
RUN useradd --system --create-home --uid 997 barnabas \
    && mkdir -p /var/lib/barnabas \
    && chown barnabas /var/lib/barnabas
ENV PATH=/opt/barnabas/bin:$PATH PYTHONUNBUFFERED=1 BARNABAS_LOG_DIRS=/var/lib/barnabas
COPY --from=project /opt/barnabas /opt/barnabas
COPY docker/broker/start.sh /opt/barnabas/
USER barnabas
ENTRYPOINT ["/opt/barnabas/start.sh"]
CMD ["broker", "run", "--env"]

FROM python AS faults
RUN apt-get update \
    && apt-get install -y --no-install-recommends iptables iproute2 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/man
CMD ["sleep", "infinity"]

FROM ${BASE} AS java
# The JRE's package needs a directory that slim images lack.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/man

# The package depends on 50 others, for tools and an HTTP server that are not used here.
FROM java AS jars
RUN apt-get update \
    && apt-get install -y --no-install-recommends libzookeeper-java \
    && mkdir -p /opt/zookeeper/jars \
    && cd /usr/share/java \
    && cp -L zookeeper.jar zookeeper-jute.jar slf4j-api.jar slf4j-simple.jar metrics-core.jar \
        snappy-java.jar /opt/zookeeper/jars

FROM java AS zookeeper
RUN useradd --system --create-home --uid 998 zookeeper \
    && mkdir -p /var/lib/zookeeper \
    && chown zookeeper /var/lib/zookeeper
COPY --from=jars /opt/zookeeper/jars /opt/zookeeper/jars
COPY docker/zookeeper/start.sh /opt/zookeeper/
USER zookeeper
VOLUME /var/lib/zookeeper
EXPOSE 2181
CMD ["/opt/zookeeper/start.sh"]

FROM dependencies AS spark-packages
RUN python3 requirements.py spark >spark.txt \
    && /tmp/tools/bin/pip --python /opt/barnabas/bin/python install --requirement spark.txt
COPY --from=project /wheels /wheels
RUN /tmp/tools/bin/pip --python /opt/barnabas/bin/python install --no-deps --no-index /wheels/*.whl

FROM java AS spark
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 procps \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/man \
    && useradd --system --create-home --uid 997 barnabas
ENV PATH=/opt/barnabas/bin:$PATH PYTHONUNBUFFERED=1
COPY --from=spark-packages /opt/barnabas /opt/barnabas
COPY docker/spark/count_records.py /opt/barnabas/jobs/
USER barnabas
ENTRYPOINT ["python", "/opt/barnabas/jobs/count_records.py"]
