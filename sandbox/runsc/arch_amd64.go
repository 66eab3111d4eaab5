package runsc

import specs "github.com/opencontainers/runtime-spec/specs-go"

const ociArch = specs.ArchX86_64
