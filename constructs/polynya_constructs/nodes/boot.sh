# Boot of a node, from user data. What it needs comes before it as variables: see boot.py.
# Everything is fetched through S3: the system's packages from Amazon Linux's own repositories, the
# runtime from the CDK's bucket of assets. It can be run again: what is there is left alone.
set -Eeuo pipefail
umask 022
ROOT=/opt/polynya
IMDS=${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}
CLUSTER=
# For the AWS commands below and for the agent, in seconds: a metadata service that is slow for a
# moment is asked again. It has version 2 only: SDKs that get no token would ask for version 1 for
# ten seconds more, and then report an error while the old credentials are still valid.
export AWS_METADATA_SERVICE_TIMEOUT=2 AWS_METADATA_SERVICE_NUM_ATTEMPTS=5
export AWS_EC2_METADATA_V1_DISABLED=true

STEP=starting
say() { echo "polynya boot, ${SECONDS} s: $*"; }
step() {
  STEP=$1
  say "$1"
}

# Any failure ends here. The node gives its launch back and switches itself off, so that the group
# replaces it even where no launch hook waits.
abandon() {
  trap - ERR
  set +e
  say "FAILED: $*"
  tail -n 20 /var/log/polynya/agent.log 2>/dev/null
  if [ -n "$CLUSTER" ]; then
    tell_failed_boot "$*"
    say "giving the node back"
    sleep 5 # the CloudWatch agent sends this log every second
    aws autoscaling complete-lifecycle-action --lifecycle-action-result ABANDON \
      --lifecycle-hook-name ready --auto-scaling-group-name "$CLUSTER" --instance-id "$INSTANCE"
  fi
  systemctl poweroff
  exit 1
}
trap 'abandon "line $LINENO: $BASH_COMMAND"' ERR

# Counted under the code that did not boot: a deploy of it goes back, and after three of them the
# launches of the group are held. The alarm of a deploy wants two minutes, and this took longer.
# Sent from here, for a boot may fail before the CloudWatch agent is there. `make trial` reads why.
tell_failed_boot() {
  local now names reason events=()
  now=$(date +%s)
  reason="$1 $(grep -ohs 'POLYNYA-[A-Z]*-[0-9]*' /var/log/polynya/agent.log | tail -n 1)"
  # Without what would end a string of JSON.
  reason=$(printf '%s' "$reason" | tr -cs '[:alnum:] .,:/_=@%+()-' ' ' | cut -c1-400)
  names='"Dimensions":[["Cluster","Code"]],"Metrics":[{"Name":"FailingAgents","Unit":"Count"}'
  for at in "$((now - 60))" "$now"; do
    [ "$at" != "$now" ] || nothing_pushed || names+=',{"Name":"FailedBoots","Unit":"Count"}'
    events+=("{\"timestamp\":${at}000,\"message\":$(printf '%s' \
      "{\"_aws\":{\"Timestamp\":${at}000,\"CloudWatchMetrics\":[{\"Namespace\":\"Polynya\",$names]}]}," \
      "\"Cluster\":\"$CLUSTER\",\"Code\":\"${CODE_SHA256:0:16}\",\"FailingAgents\":1,\"FailedBoots\":1," \
      "\"Step\":\"$STEP\",\"Reason\":\"$reason\"}" |
      sed 's/"/\\"/g; s/^/"/; s/$/"/')}")
  done
  aws logs create-log-stream --log-group-name "$LOG_GROUP" --log-stream-name "$INSTANCE/failed"
  aws logs put-log-events --log-group-name "$LOG_GROUP" --log-stream-name "$INSTANCE/failed" \
    --log-events "[${events[0]},${events[1]}]" >/dev/null
}

# The agent waits for a first `polynya config push`; the code is not to blame, and is not held.
nothing_pushed() { grep -qs POLYNYA-BKT-006 /var/log/polynya/agent.log; }

retry() {
  local attempt
  for attempt in 1 2 3; do
    "$@" && return 0
    say "attempt $attempt failed: $*"
    sleep $((attempt * 5))
  done
  abandon "failed three times: $*"
}

metadata() {
  curl -sSf --retry 5 --retry-connrefused --max-time 5 \
    -H "X-aws-ec2-metadata-token: $TOKEN" "$IMDS/latest/meta-data/$1"
}

identify() {
  TOKEN=$(curl -sSf --retry 5 --retry-connrefused --max-time 5 -X PUT \
    -H 'X-aws-ec2-metadata-token-ttl-seconds: 3600' "$IMDS/latest/api/token")
  INSTANCE=$(metadata instance-id)
  AWS_DEFAULT_REGION=$(metadata placement/region)
  LIFECYCLE=$(metadata instance-life-cycle)
  CLUSTER=$(metadata tags/instance/polynya:cluster)
  export AWS_DEFAULT_REGION
  say "$INSTANCE of $CLUSTER, $LIFECYCLE, $AWS_DEFAULT_REGION"
}

# Logs of this boot, of the agent and of a server. A line of metrics in CloudWatch's embedded format
# becomes metrics there.
ship_logs() {
  local log of_server=
  for log in ${SERVER:+server probe}; do
    of_server+=",
  {\"file_path\": \"/var/log/polynya/$log.log\", \"log_group_name\": \"$LOG_GROUP\",
   \"log_stream_name\": \"$INSTANCE/$log\"}"
  done
  mkdir -p /etc/polynya
  cat >/etc/polynya/cloudwatch.json <<JSON
{"agent": {"region": "$AWS_DEFAULT_REGION"},
 "logs": {"force_flush_interval": 1, "logs_collected": {"files": {"collect_list": [
  {"file_path": "/var/log/cloud-init-output.log", "log_group_name": "$LOG_GROUP",
   "log_stream_name": "$INSTANCE/boot"},
  {"file_path": "/var/log/polynya/agent.log", "log_group_name": "$LOG_GROUP",
   "log_stream_name": "$INSTANCE/agent"},
  {"file_path": "/var/log/polynya/drain.log", "log_group_name": "$LOG_GROUP",
   "log_stream_name": "$INSTANCE/drain"},
  {"file_path": "/var/log/polynya/health.log", "log_group_name": "$LOG_GROUP",
   "log_stream_name": "$INSTANCE/health"}$of_server]}}}}
JSON
  cat >/etc/logrotate.d/polynya <<'CONF'
/var/log/polynya/*.log {
  su root root
  size 100M
  rotate 3
  copytruncate
  missingok
}
CONF
  /opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl -a fetch-config -m ec2 -s \
    -c file:/etc/polynya/cloudwatch.json >/dev/null
}

# Fetch an archive, verify it, and only then unpack it: $1 what it is, $2 where from, $3 SHA-256.
fetch() {
  local place=$ROOT/$1/${3:0:16}
  if [ ! -d "$place" ]; then
    rm -rf "$place".*
    mkdir -p "$place.partial"
    retry aws s3 cp --only-show-errors "$2" "$place.tar"
    step "verifying the $1"
    echo "$3  $place.tar" | sha256sum --check --status ||
      abandon "the $1 at $2 is not the file that the template names; it was not unpacked"
    tar --extract --no-same-owner --file "$place.tar" --directory "$place.partial"
    rm "$place.tar"
    mv "$place.partial" "$place"
  fi
  ln -sfn "$place" "$ROOT/$1/current"
}

install_runtime() {
  fetch dependencies "$DEPENDENCIES_URL" "$DEPENDENCIES_SHA256"
  fetch code "$CODE_URL" "$CODE_SHA256"
  [ -x $ROOT/venv/bin/python ] || "python$PYTHON" -m venv --without-pip $ROOT/venv
  printf '%s\n' $ROOT/dependencies/current/site-packages $ROOT/code/current \
    >"$ROOT/venv/lib/python$PYTHON/site-packages/polynya.pth"
  # The agent may write nowhere below, so that it could not keep what it compiles.
  $ROOT/venv/bin/python -m compileall -q -j 0 \
    $ROOT/dependencies/current/site-packages/ $ROOT/code/current/polynya/ >/dev/null || true
  local files=$ROOT/code/current/node
  install -D -m 755 -t $ROOT/bin $files/{polynya,launched,drain,health,probe}
  install -D -m 644 -t /etc/systemd/system \
    $files/polynya-{agent,drain,health,network-agent,server,probe}.service
  ln -sfn $ROOT/bin/polynya /usr/bin/polynya
}

configure() {
  id polynya >/dev/null 2>&1 ||
    useradd --system --home-dir /var/lib/polynya --shell /sbin/nologin polynya
  install -d -o polynya -g polynya -m 750 /var/lib/polynya /var/lib/polynya/tmp /var/log/polynya
  # Spark's files stay off /tmp, which is memory on Amazon Linux.
  cat >/etc/polynya/agent.env <<ENV
POLYNYA_NODE_ID=$INSTANCE
POLYNYA_CLUSTER=$CLUSTER
POLYNYA_CODE=${CODE_SHA256:0:16}
POLYNYA_LIFECYCLE=$LIFECYCLE
POLYNYA_CONFIG=$CONFIG
POLYNYA_AGENT_OPTIONS="$AGENT_OPTIONS"
POLYNYA_JOB_CODE="${JOB_CODE:-}"
POLYNYA_EMR_JOBS="${EMR_JOBS:-}"
POLYNYA_GLUE_JOB="${GLUE_JOB:-}"
POLYNYA_JARS=$ROOT/dependencies/current/jars
AWS_REGION=$AWS_DEFAULT_REGION
AWS_DEFAULT_REGION=$AWS_DEFAULT_REGION
AWS_METADATA_SERVICE_TIMEOUT=$AWS_METADATA_SERVICE_TIMEOUT
AWS_METADATA_SERVICE_NUM_ATTEMPTS=$AWS_METADATA_SERVICE_NUM_ATTEMPTS
AWS_EC2_METADATA_V1_DISABLED=$AWS_EC2_METADATA_V1_DISABLED
HOME=/var/lib/polynya
TMPDIR=/var/lib/polynya/tmp
SPARK_LOCAL_DIRS=/var/lib/polynya/tmp
XDG_CACHE_HOME=/var/lib/polynya/cache
ENV
  [ -z "${SERVER:-}" ] || configure_server
  $ROOT/bin/polynya --version
}

# The server has a cluster and options of its own beside the agent's. Behind a load balancer it has a
# certificate that nobody signed: the load balancer encrypts, and does not ask who answers.
configure_server() {
  cat >/etc/polynya/server.env <<ENV
POLYNYA_SERVER=$SERVER
POLYNYA_SERVER_CONFIG=$SERVER_CONFIG
POLYNYA_SERVER_OPTIONS="$SERVER_OPTIONS"
POLYNYA_SERVER_URL=$SERVER_URL
POLYNYA_COORDINATION=$SERVER_COORDINATION
POLYNYA_CLUSTER=$SERVER_CLUSTER
ENV
  [[ $SERVER_URL == https:* ]] && [ ! -e /etc/polynya/server.pem ] || return 0
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=polynya \
    -keyout /etc/polynya/server-key.pem -out /etc/polynya/server.pem 2>/dev/null
  chown root:polynya /etc/polynya/server-key.pem
  chmod 640 /etc/polynya/server-key.pem
}

# The unit completes the launch hook when the agent is ready; here is only how long that may take.
start() {
  systemctl daemon-reload
  # shellcheck disable=SC2086
  systemctl enable --quiet $UNITS
  # shellcheck disable=SC2086
  systemctl start --no-block $UNITS
  local deadline=$((SECONDS + READY_SECONDS))
  until systemctl is-active --quiet "${UNITS%% *}"; do
    [ $SECONDS -lt $deadline ] || abandon "the agent was not ready after $READY_SECONDS seconds"
    sleep 1
  done
  say "in service"
}

identify
step "installing the system's packages"
# shellcheck disable=SC2086
retry dnf --assumeyes --quiet --setopt=install_weak_deps=False install \
  "python$PYTHON" $PACKAGES amazon-cloudwatch-agent logrotate tar
ship_logs
step "fetching the runtime"
install_runtime
configure
step "starting the agent"
start
