// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"errors"
)

// ErrTaken means that a name belongs to another owner.
var ErrTaken = errors.New("name is taken")

// ErrNotFound means that no record exists for a name.
var ErrNotFound = errors.New("no such record")

// Record points a name at an address.
type Record struct {
	// Name is the published name, such as www.example.com.
	Name string `json:"name"`
	// Target is the address that the name resolves to.
	Target string `json:"target"`
	// Owner identifies the publisher of the record. Another owner cannot change or withdraw it.
	Owner string `json:"owner"`
}

// Provider publishes names. It is safe for concurrent use.
type Provider interface {
	// Publish makes the record the only one of its owner: it first publishes the record, and then withdraws all other
	// records of the owner. If the name belongs to another owner, it returns an error that wraps ErrTaken and changes
	// nothing. To publish an unchanged record changes nothing.
	Publish(ctx context.Context, record Record) error
	// Withdraw removes all records of an owner. It returns nil if the owner has none.
	Withdraw(ctx context.Context, owner string) error
	// Lookup returns the record of a name, or an error that wraps ErrNotFound.
	Lookup(ctx context.Context, name string) (Record, error)
}
