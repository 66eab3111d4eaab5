// The probe is what the privileged tests run inside a real runsc: it does the
// steps named by its arguments, says on stdout how each went, and then keeps
// what it opened until its standard input ends.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"syscall"
)

func main() {
	var kept []any
	for args := os.Args[1:]; len(args) >= 2; args = args[2:] {
		var err error
		switch args[0] {
		case "stat":
			_, err = os.Lstat(args[1])
		case "open":
			var f *os.File
			f, err = os.Open(args[1])
			kept = append(kept, f)
		case "read":
			_, err = os.ReadFile(args[1])
		case "map":
			var f *os.File
			if f, err = os.Open(args[1]); err == nil {
				var page []byte
				if page, err = syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_PRIVATE); err == nil {
					kept = append(kept, page, page[0])
				}
			}
		case "fill": // 1 MiB, held open
			var f *os.File
			if f, err = os.Create(args[1]); err == nil {
				_, err = f.Write(bytes.Repeat([]byte{'x'}, 1<<20))
				kept = append(kept, f)
			}
		case "unlink":
			err = os.Remove(args[1])
		}
		fmt.Println(args[0], args[1], err)
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = fmt.Sprint(len(kept))
}
