#include "textflag.h"

// func cloneRaw(flags uintptr, order *rawOrder) (tid int64)
TEXT ·cloneRaw(SB), NOSPLIT, $0-24
	MOVD flags+0(FP), R0
	MOVD order+8(FP), R1
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8 // clone
	SVC
	CBZ  R0, task
	MOVD R0, tid+16(FP)
	RET

task:
	// Here RSP is the new stack, and the rawOrder stands at it.
	MOVD RSP, R19
	MOVD 0(R19), R20 // low
	CBZ  R20, touched
	MOVD RSP, R21
	MOVD $1, R22

touch:
	SUB  $4096, R21
	CMP  R20, R21
	BLO  touched
	MOVB R22, (R21)
	B    touch

touched:
	MOVD 8(R19), R20 // spin
	CBNZ R20, spin
	MOVD ZR, 72(R19) // record
	MOVD 16(R19), R20 // session
	CBZ  R20, tell
	MOVD $157, R8 // setsid
	SVC
	CMP  $0, R0
	BGE  tell
	NEG  R0, R0
	MOVD R0, 72(R19)

tell:
	MOVD 24(R19), R20 // silent
	CBNZ R20, told
	MOVD 32(R19), R0 // report
	ADD  $72, R19, R1
	MOVD $8, R2
	MOVD $64, R8 // write
	SVC

told:
	MOVD 40(R19), R1 // next
	CBZ  R1, wait
	MOVD 48(R19), R0 // flags
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8 // clone
	SVC
	CBZ  R0, task
	CMP  $0, R0
	BLT  refused
	MOVD 56(R19), R20 // leave
	CBNZ R20, end
	B    wait

refused:
	NEG  R0, R0
	MOVD R0, 72(R19)
	MOVD 32(R19), R0 // report
	ADD  $72, R19, R1
	MOVD $8, R2
	MOVD $64, R8 // write
	SVC

wait:
	MOVD 64(R19), R0 // release
	ADD  $72, R19, R1
	MOVD $1, R2
	MOVD $63, R8 // read
	SVC

end:
	MOVD ZR, R0
	MOVD $93, R8 // exit, of this task alone
	SVC
	B    end

spin:
	YIELD
	B spin
