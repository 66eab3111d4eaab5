#!/bin/sh
# Writes the tables of system call numbers from the constants of
# golang.org/x/sys/unix, which takes them from the kernel's own headers.
set -eu
sys=$(go list -m -f '{{.Dir}}' golang.org/x/sys)
for arch in amd64 arm64; do
	{
		echo "// Code generated from golang.org/x/sys/unix by go generate. DO NOT EDIT."
		printf '\npackage syscalls\n\n// numbers are the system calls of linux/%s by name.\nvar numbers = map[string]int{\n' "$arch"
		awk '$1 ~ /^SYS_/ && $2 == "=" { n = tolower($1); sub(/^sys_/, "", n); print "\t\"" n "\": " $3 "," }' "$sys/unix/zsysnum_linux_$arch.go"
		echo "}"
	} >"numbers_linux_$arch.go"
done
gofmt -w numbers_linux_*.go
