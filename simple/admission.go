// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"

	"trueup.dev/app"
)

// KindMutator changes objects of a kind before they are stored.
//
// It is called for every creation and every update, including dry runs, and may be called more than once for one
// request. It must only change the object, and must be idempotent.
type KindMutator interface {
	// Mutate changes the object of the request, or returns another object to replace it. An error denies the request
	// with its text. An error of k8s.io/apimachinery/pkg/api/errors also sets the code and the reason.
	Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error)
}

// KindValidator allows or denies requests that create, update or delete objects of a kind.
type KindValidator interface {
	// Validate returns nil to allow the request. An error denies the request with its text. An error of
	// k8s.io/apimachinery/pkg/api/errors also sets the code and the reason.
	Validate(ctx context.Context, req *app.AdmissionRequest) error
}

var (
	_ KindMutator   = (*Mutator)(nil)
	_ KindValidator = (*Validator)(nil)
)

// Mutator is a [KindMutator] that calls a function.
type Mutator struct {
	// MutateFunc changes the object of the request. If it is nil, nothing changes.
	MutateFunc func(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error)
}

// Mutate calls MutateFunc.
func (m *Mutator) Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error) {
	if m.MutateFunc == nil {
		return &app.MutatingResponse{UpdatedObject: req.Object}, nil
	}
	return m.MutateFunc(ctx, req)
}

// Validator is a [KindValidator] that calls a function.
type Validator struct {
	// ValidateFunc allows or denies the request. If it is nil, all requests are allowed.
	ValidateFunc func(ctx context.Context, req *app.AdmissionRequest) error
}

// Validate calls ValidateFunc.
func (v *Validator) Validate(ctx context.Context, req *app.AdmissionRequest) error {
	if v.ValidateFunc == nil {
		return nil
	}
	return v.ValidateFunc(ctx, req)
}
