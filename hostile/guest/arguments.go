package main

import (
	"runtime"
	"unsafe"
)

// pinned keeps the memory that a raw system call's arguments point to where it
// is, so that its address may be held as a number. The zero value is ready.
type pinned struct{ runtime.Pinner }

// str returns the address of s as a C string.
func (p *pinned) str(s string) uintptr { return p.bytes(append([]byte(s), 0)) }

// bytes returns the address of b, which must not be empty.
func (p *pinned) bytes(b []byte) uintptr {
	p.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

// dirAt is AT_FDCWD as an argument of a raw system call.
const dirAt = ^uintptr(99)
