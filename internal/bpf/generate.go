package bpf

//go:generate bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -type outcome -type label_abi -type tls_kind -type counter -type event_kind -type process_id -type process_entry -type label_source -type go_layout -type process_event -type label_block -type raw_label -type sample_header profiler src/profiler.bpf.c -- -O2 -mcpu=v3 -Wall -Werror -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu
