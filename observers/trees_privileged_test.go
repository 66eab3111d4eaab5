//go:build privileged

package observers

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Owners and device numbers can only be changed by root.
func TestOwnersAndDevicesCount(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	device := root + "/null"
	digest := func() string {
		sum, _, err := TreeDigest(root)
		must(t, err)
		return sum
	}
	must(t, unix.Mknod(device, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	sums := map[string]string{digest(): "as made"}
	for what, change := range map[string]func() error{
		"owner": func() error { return os.Lchown(device, 65534, 0) },
		"group": func() error { return os.Lchown(device, 0, 65534) },
		"device": func() error {
			return replace(device, func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))) })
		},
	} {
		must(t, change())
		sum := digest()
		if known := sums[sum]; known != "" {
			t.Errorf("%s: the digest is that of %s", what, known)
		}
		sums[sum] = what
	}
}
