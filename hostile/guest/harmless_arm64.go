package main

// Calls that only other machines have.
var capabilityOnlyOfMachine, forksOfMachine []uintptr
