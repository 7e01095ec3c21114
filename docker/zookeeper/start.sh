#!/usr/bin/env bash
# Runs ZooKeeper: alone, or as member ZOOKEEPER_ID of the ensemble ZOOKEEPER_SERVERS, which names
# the hosts of all members in the order of their ids ("zookeeper zookeeper2 zookeeper3").
set -euo pipefail

data=/var/lib/zookeeper
if ! [ -w "$data" ]; then
    echo "$data cannot be written to: its volume is missing or belongs to another user" >&2
    exit 1
fi

configuration=/tmp/zoo.cfg
# A session's expiry is rounded to ticks: with 3000 ms a session of six seconds took eight. Twenty
# ticks, the default of the maximum, are less than Kafka's default session of 18 s.
cat >"$configuration" <<END
dataDir=$data
clientPort=2181
tickTime=500
initLimit=20
syncLimit=10
minSessionTimeout=1000
maxSessionTimeout=120000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
END

read -ra servers <<<"${ZOOKEEPER_SERVERS:-}"
main=org.apache.zookeeper.server.ZooKeeperServerMain
if [ "${#servers[@]}" -gt 1 ]; then
    main=org.apache.zookeeper.server.quorum.QuorumPeerMain
    echo "${ZOOKEEPER_ID:?is not set}" >"$data/myid"
    # The other members look up this container's name, which is not an address it can bind first.
    echo "quorumListenOnAllIPs=true" >>"$configuration"
    for index in "${!servers[@]}"; do
        echo "server.$((index + 1))=${servers[index]}:2888:3888" >>"$configuration"
    done
fi

log=org.slf4j.simpleLogger
exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -XX:-UsePerfData \
    -XX:+ExitOnOutOfMemoryError -Dzookeeper.preAllocSize=4096 -Djava.net.preferIPv4Stack=true \
    -D$log.defaultLogLevel=warn -D$log.showThreadName=false -D$log.showShortLogName=true \
    -D$log.showDateTime=true "-D$log.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS" \
    -cp '/opt/zookeeper/jars/*' "$main" "$configuration"
