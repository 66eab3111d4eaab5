// Package syscalls names the machine's system calls and numbers them.
//
// What this package does not prove: that a number is implemented by any kernel.
package syscalls

//go:generate sh generate.sh

// Number returns the number of the call of that name on this architecture.
func Number(name string) (int, bool) {
	n, ok := numbers[name]
	return n, ok
}

// Name returns the name of the call of that number, or "" when it has none.
func Name(number int) string {
	for name, n := range numbers {
		if n == number {
			return name
		}
	}
	return ""
}
