// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"

	"trueup.dev/app"
)

// KindMutator changes objects of a kind before they are stored.
//
// It is called for every creation and every change, of dry runs as well, and may be called more than once for one: it
// must do nothing but change the object, and come to the same a second time.
type KindMutator interface {
	// Mutate changes the object of the request, or returns another one in its place. An error denies the request with its
	// text; one of k8s.io/apimachinery/pkg/api/errors does so with its code and reason, too.
	Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error)
}

// KindValidator allows or denies requests that create, change or delete objects of a kind.
type KindValidator interface {
	// Validate returns nil to allow the request. An error denies it with its text; one of
	// k8s.io/apimachinery/pkg/api/errors does so with its code and reason, too.
	Validate(ctx context.Context, req *app.AdmissionRequest) error
}

var (
	_ KindMutator   = (*Mutator)(nil)
	_ KindValidator = (*Validator)(nil)
)

// Mutator is a [KindMutator] made of a function.
type Mutator struct {
	// MutateFunc changes the object of the request. Nil changes nothing.
	MutateFunc func(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error)
}

// Mutate calls MutateFunc.
func (m *Mutator) Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error) {
	if m.MutateFunc == nil {
		return &app.MutatingResponse{UpdatedObject: req.Object}, nil
	}
	return m.MutateFunc(ctx, req)
}

// Validator is a [KindValidator] made of a function.
type Validator struct {
	// ValidateFunc allows or denies the request. Nil allows all.
	ValidateFunc func(ctx context.Context, req *app.AdmissionRequest) error
}

// Validate calls ValidateFunc.
func (v *Validator) Validate(ctx context.Context, req *app.AdmissionRequest) error {
	if v.ValidateFunc == nil {
		return nil
	}
	return v.ValidateFunc(ctx, req)
}
