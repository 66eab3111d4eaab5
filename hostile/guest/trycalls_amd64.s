#include "textflag.h"

// func cloneBatch(flags uintptr, b *callBatch) (pid int64)
//
// The child keeps all it needs in registers that system calls leave alone; its
// stack pointer is 0 mod 16 and points into the batch, and nothing is pushed.
TEXT ·cloneBatch(SB), NOSPLIT, $0-24
	MOVQ flags+0(FP), DI
	MOVQ b+8(FP), R12
	MOVQ R12, SI
	XORQ DX, DX
	XORQ R10, R10
	XORQ R8, R8
	MOVQ $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ AX, pid+16(FP)
	RET

child:
	MOVQ 0(R12), R14 // at
	CMPQ R14, 8(R12) // end
	JCC  end
	IMUL3Q $72, R14, R15
	ADDQ 16(R12), R15 // rows
	MOVQ 0(R15), AX   // trap
	MOVQ 8(R15), DI   // args
	MOVQ 16(R15), SI
	MOVQ 24(R15), DX
	MOVQ 32(R15), R10
	MOVQ 40(R15), R8
	MOVQ 48(R15), R9
	SYSCALL
	CMPQ 56(R15), $0 // twice
	JEQ  told
	TESTQ AX, AX
	JEQ  end // the child that the call made

told:
	MOVQ AX, 64(R15) // result
	INCQ R14
	MOVQ R14, 0(R12)
	JMP  child

end:
	XORQ DI, DI
	MOVQ $231, AX // exit_group
	SYSCALL
	JMP  end
