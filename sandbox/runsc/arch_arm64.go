package runsc

import specs "github.com/opencontainers/runtime-spec/specs-go"

const ociArch = specs.ArchAARCH64
