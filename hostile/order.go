package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Order is what the harness hands to the payload as its one argument: which
// routes to try, in which order, and what they need to know. It holds no
// secret: a secret in the order would be inside without having been read.
type Order struct {
	Nonce  string            `json:"nonce"`
	Routes []string          `json:"routes"`           // "attempt/route"
	Params map[string]string `json:"params,omitempty"` // addresses, sizes and paths, by the names the payload documents
}

// Encode returns the argument.
func (o Order) Encode() (string, error) {
	if o.Nonce == "" || len(o.Routes) == 0 {
		return "", errors.New("encode order: no nonce or no routes")
	}
	b, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encode order: %w", err)
	}
	return string(b), nil
}

// ParseOrder reads the argument back, strictly.
func ParseOrder(arg string) (Order, error) {
	var o Order
	dec := json.NewDecoder(bytes.NewReader([]byte(arg)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return Order{}, fmt.Errorf("parse order: %w", err)
	}
	if dec.InputOffset() != int64(len(arg)) {
		return Order{}, errors.New("parse order: bytes after the object")
	}
	if o.Nonce == "" || len(o.Routes) == 0 {
		return Order{}, errors.New("parse order: no nonce or no routes")
	}
	return o, nil
}
