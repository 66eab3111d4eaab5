package observers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkMountScan reads and judges a table of 2,000 mounts against a host's
// of as many. Wanted: at most 20 ms.
func BenchmarkMountScan(b *testing.B) {
	var table strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&table, "%d 27 254:0 /var/lib/image%d /mnt/%d ro,nosuid,relatime shared:%d - ext4 /dev/vda rw,discard\n", 100+i, i, i, i)
	}
	h := Host{Proc: b.TempDir()}
	for path, text := range map[string]string{"self/mountinfo": table.String(), "7/mountinfo": table.String()} {
		path = filepath.Join(h.Proc, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			b.Fatal(err)
		}
	}
	for _, folder := range []string{"7/fd", "7/ns"} {
		if err := os.Mkdir(filepath.Join(h.Proc, folder), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	for link, target := range map[string]string{"7/ns/mnt": "mnt:[1]", "7/root": "recorded:", "7/cwd": "recorded:"} {
		if err := os.Symlink(target, filepath.Join(h.Proc, link)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		m, err := readHostMounts(h, []string{"/"})
		if err != nil {
			b.Fatal(err)
		}
		if scan, err := scanMounts(h, m, []string{"7"}, nil, nil); err != nil || len(scan.mounts) != 2000 {
			b.Fatalf("%v, %v", scan, err)
		}
	}
}
