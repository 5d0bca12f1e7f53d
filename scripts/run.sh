#!/usr/bin/env bash
# The demonstration behind `make run`: builds the collector, our sink and the demo
# programs, samples the programs for 40 seconds, and shows CPU by label set next to
# the shares that the programs measured themselves. Stops everything it started.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly duration=40       # seconds of sampling
readonly writer_seconds=60 # longer than that and the start-up together
readonly start_timeout=20  # seconds until collector and sink must be up
readonly out=build/run

if ((EUID != 0)); then
	cat >&2 <<-'EOF'
		make run samples the whole host, which needs root:
		    sudo env "PATH=$PATH" make run
		A collector that runs all the time needs no root, only these capabilities: CAP_BPF, CAP_PERFMON,
		CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE and CAP_SYSLOG, and CAP_SYS_ADMIN where
		kernel.perf_event_paranoid is above 2. README.md says what each is for.
	EOF
	exit 1
fi

declare -a writers=()
sink=''
collector=''
timer=''

# end PID...: asks the processes to end and waits until they have.
end() {
	local pid status=0
	for pid in "$@"; do
		kill -TERM "$pid" 2>/dev/null || true
	done
	for pid in "$@"; do
		wait "$pid" 2>/dev/null || status=$?
	done
	return "$status"
}

# shellcheck disable=SC2317 # the traps call it
stop() {
	local status=$?
	trap - EXIT INT TERM
	# shellcheck disable=SC2086 # those that are not running are empty
	end $timer "${writers[@]}" $collector $sink || true
	# Who called sudo goes on as himself.
	[[ -z ${SUDO_UID:-} ]] || chown -Rh "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" bin build
	exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

in_use() {
	(exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# free_port PORT...: the first that is free
free_port() {
	local port
	for port in "$@"; do
		if ! in_use "$port"; then
			echo "$port"
			return
		fi
	done
	echo "run: no free port on loopback" >&2
	return 1
}

# await WHAT PID LOG CONDITION...: until the condition holds; fails when the process ends first.
await() {
	local what=$1 pid=$2 log=$3 deadline=$((SECONDS + start_timeout))
	shift 3
	until "$@"; do
		if ! kill -0 "$pid" 2>/dev/null || ((SECONDS > deadline)); then
			echo "run: $what did not start:" >&2
			tail -n 5 "$log" >&2
			return 1
		fi
		sleep 0.1
	done
}

rm -rf "$out"
mkdir -p "$out"

echo "Building the collector, labelprof and the demo programs (a few minutes the first time) ..."
if ! make --no-print-directory collector labelprof writers >"$out/build.log" 2>&1; then
	tail -n 20 "$out/build.log" >&2
	echo "run: the build failed; all of its output is in $out/build.log" >&2
	exit 1
fi

port=$(free_port 4317 {14317..14399})
page=$(free_port 7317 {17317..17399})

truths=()
for program in build/writers/writer-{v0,v1,ctx}-{exe,lib,dlopen}; do
	truths+=(--truth "$out/$(basename "$program").json")
done

bin/labelprof serve --listen "127.0.0.1:$port" --web "127.0.0.1:$page" --by tenant \
	--pprof "$out/profile.pb.gz" --out-otlp "$out/profiles.otlp" "${truths[@]}" 2> >(tee "$out/labelprof.log" >&2) &
sink=$!
await labelprof "$sink" "$out/labelprof.log" in_use "$port"

OTLP_ENDPOINT="127.0.0.1:$port" build/otelcol-customlabels --config examples/quickstart.yaml \
	--feature-gates=service.profilesSupport >"$out/collector.log" 2>&1 &
collector=$!
await "the collector" "$collector" "$out/collector.log" grep -q "Everything is ready" "$out/collector.log"

for program in build/writers/writer-{v0,v1,ctx}-{exe,lib,dlopen}; do
	name=$(basename "$program")
	"$program" shares --threads 1 --seconds "$writer_seconds" --truth "$out/$name.json" >"$out/$name.log" 2>&1 &
	writers+=("$!")
done
echo "Sampling this host for $duration seconds, beside ${#writers[@]} programs that publish labels ..."

sleep "$duration" &
timer=$!
wait -n -p ended "$timer" "$sink" "$collector" || true
if [[ $ended != "$timer" ]]; then
	echo "run: the collector or labelprof ended early:" >&2
	tail -n 5 "$out/collector.log" "$out/labelprof.log" >&2
	exit 1
fi
timer=''

# In the order of the flow, so that everything that was sampled arrives.
end "${writers[@]}"
writers=()
end "$collector"
collector=''
pid=$sink
sink=''
end "$pid"

cat <<EOF
tenant (none) holds the rest of the host.

The page with what was received, again:
    bin/labelprof serve $out/profiles.otlp
The profile is in $out/profile.pb.gz, the collector's log in $out/collector.log. For instance:
    go tool pprof -top -tagfocus 'tenant=acme' $out/profile.pb.gz
    go tool pprof -top -tagfocus 'trace_id=.*' $out/profile.pb.gz
EOF
