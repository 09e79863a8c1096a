// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"errors"
)

// ErrTaken says that a name belongs to another owner.
var ErrTaken = errors.New("name is taken")

// ErrNotFound says that nothing is published under a name.
var ErrNotFound = errors.New("no such record")

// Record points a name at an address.
type Record struct {
	// Name is the published name, such as www.example.com.
	Name string `json:"name"`
	// Target is the address the name leads to.
	Target string `json:"target"`
	// Owner is who published the record. Nobody else can change or withdraw it.
	Owner string `json:"owner"`
}

// Provider publishes names. It is safe for concurrent use.
type Provider interface {
	// Publish makes the record the only one of its owner: a record the owner had under another name is withdrawn, after
	// the new one is in place. A name that belongs to another owner is an error that wraps ErrTaken; then nothing has
	// changed. Publishing again what is published already changes nothing.
	Publish(ctx context.Context, record Record) error
	// Withdraw removes all records of an owner. Having none is no error.
	Withdraw(ctx context.Context, owner string) error
	// Lookup returns the record of a name, or an error that wraps ErrNotFound.
	Lookup(ctx context.Context, name string) (Record, error)
}
