#include "textflag.h"

// func cloneRaw(flags uintptr, order *rawOrder) (tid int64)
TEXT ·cloneRaw(SB), NOSPLIT, $0-24
	MOVQ flags+0(FP), DI
	MOVQ order+8(FP), SI
	XORQ DX, DX
	XORQ R10, R10
	XORQ R8, R8
	MOVQ $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  task
	MOVQ AX, tid+16(FP)
	RET

task:
	// Here SP is the new stack, and the rawOrder stands at it.
	MOVQ SP, R12
	MOVQ 0(R12), R13 // low
	TESTQ R13, R13
	JEQ  touched
	MOVQ SP, R14

touch:
	SUBQ $4096, R14
	CMPQ R14, R13
	JCS  touched
	MOVB $1, (R14)
	JMP  touch

touched:
	CMPQ 8(R12), $0 // spin
	JNE  spin
	MOVQ $0, 72(R12) // record
	CMPQ 16(R12), $0 // session
	JEQ  tell
	MOVQ $112, AX // setsid
	SYSCALL
	TESTQ AX, AX
	JGE  tell
	NEGQ AX
	MOVQ AX, 72(R12)

tell:
	CMPQ 24(R12), $0 // silent
	JNE  told
	MOVQ 32(R12), DI // report
	LEAQ 72(R12), SI
	MOVQ $8, DX
	MOVQ $1, AX // write
	SYSCALL

told:
	MOVQ 40(R12), SI // next
	TESTQ SI, SI
	JEQ  wait
	MOVQ 48(R12), DI // flags
	XORQ DX, DX
	XORQ R10, R10
	XORQ R8, R8
	MOVQ $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  task
	JLT  refused
	CMPQ 56(R12), $0 // leave
	JNE  end
	JMP  wait

refused:
	NEGQ AX
	MOVQ AX, 72(R12)
	MOVQ 32(R12), DI // report
	LEAQ 72(R12), SI
	MOVQ $8, DX
	MOVQ $1, AX // write
	SYSCALL

wait:
	MOVQ 64(R12), DI // release
	LEAQ 72(R12), SI
	MOVQ $1, DX
	MOVQ $0, AX // read
	SYSCALL

end:
	XORQ DI, DI
	MOVQ $60, AX // exit, of this task alone
	SYSCALL
	JMP  end

spin:
	PAUSE
	JMP spin
