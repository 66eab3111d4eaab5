#include "textflag.h"

// func cloneBatch(flags uintptr, b *callBatch) (pid int64)
//
// The child keeps all it needs in registers that system calls leave alone; its
// stack pointer points to the batch, and nothing is pushed.
TEXT ·cloneBatch(SB), NOSPLIT, $0-24
	MOVD flags+0(FP), R0
	MOVD b+8(FP), R19
	AND  $~15, R19, R1
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8 // clone
	SVC
	CBZ  R0, child
	MOVD R0, pid+16(FP)
	RET

child:
	MOVD 0(R19), R20 // at
	MOVD 8(R19), R21 // end
	CMP  R21, R20
	BHS  end
	MOVD $72, R22
	MUL  R20, R22, R21
	MOVD 16(R19), R22 // rows
	ADD  R22, R21
	MOVD 0(R21), R8 // trap
	MOVD 8(R21), R0 // args
	MOVD 16(R21), R1
	MOVD 24(R21), R2
	MOVD 32(R21), R3
	MOVD 40(R21), R4
	MOVD 48(R21), R5
	SVC
	MOVD 56(R21), R22 // twice
	CBZ  R22, told
	CBZ  R0, end // the child that the call made

told:
	MOVD R0, 64(R21) // result
	ADD  $1, R20
	MOVD R20, 0(R19)
	B    child

end:
	MOVD ZR, R0
	MOVD $94, R8 // exit_group
	SVC
	B    end
