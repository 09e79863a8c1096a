// SPDX-License-Identifier: Apache-2.0

// Package setupcheck decides when each part of a tree of reconcilers is validated. The parts of this module are
// validated together, before set-up. The user's own parts are validated after their SetupWithManager, which may prepare
// what their Validate requires.
package setupcheck

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/validation"
)

// Pass is the validation of a tree before its set-up.
type Pass struct {
	later []part
}

// part is a user's own part, validated after its set-up.
type part struct {
	ctx       context.Context
	validator validation.Validator
	prefix    string
}

// Problem is a validation error of a part.
type Problem struct {
	// Prefix is the path to the part.
	Prefix string
	Err    error
}

type placeKey struct{}

// place is the position of a context in a tree.
type place struct {
	pass *Pass // nil if the part is never set up
	// prefix is the path from the root.
	prefix string
}

// Begin returns a context to validate a tree before its set-up, and the pass whose Rest is validated after it. If ctx
// is already recursive, the caller validates everything itself, and no validation is deferred.
func Begin(ctx context.Context) (context.Context, *Pass) {
	pass := &Pass{}
	if validation.IsRecursive(ctx) {
		return ctx, pass
	}
	return context.WithValue(validation.WithRecursive(ctx), placeKey{}, place{pass: pass}), pass
}

// NeverSetUp returns a context for parts that are not set up. The user's own parts are not validated there, unless ctx
// is already recursive.
func NeverSetUp(ctx context.Context) context.Context {
	if here, ok := ctx.Value(placeKey{}).(place); ok && here.pass != nil {
		return context.WithValue(ctx, placeKey{}, place{prefix: here.prefix})
	}
	return ctx
}

// Part returns the validator of a nested part and the context to call it with. It returns nil if the part must not be
// validated now.
func Part(ctx context.Context, nested any, prefix string, args ...any) (context.Context, validation.Validator) {
	validator, ok := nested.(validation.Validator)
	if !ok || nilcheck.IsNil(nested) || !validation.IsRecursive(ctx) {
		return ctx, nil
	}
	here, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return ctx, validator
	}
	way := fmt.Sprintf(prefix, args...)
	if here.prefix != "" {
		way = here.prefix + ": " + way
	}
	if isOurs(nested) {
		return context.WithValue(ctx, placeKey{}, place{pass: here.pass, prefix: way}), validator
	}
	if here.pass != nil {
		// Below this part everything is validated, because its own Validate does it.
		here.pass.later = append(here.pass.later, part{context.WithValue(ctx, placeKey{}, nil), validator, way})
	}
	return ctx, nil
}

// Rest validates the deferred parts. It is called after the set-up of the tree.
func (p *Pass) Rest() []Problem {
	var problems []Problem
	for _, part := range p.later {
		if err := part.validate(); err != nil {
			problems = append(problems, Problem{part.prefix, err})
		}
	}
	return problems
}

func (p part) validate() (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("method Validate of %T panicked after its set-up: %v", p.validator, recovered)
			logr.FromContextOrDiscard(p.ctx).Error(err, "unable to validate", "stack", string(debug.Stack()))
		}
	}()
	return p.validator.Validate(p.ctx)
}

// ours holds the packages with reconcilers whose validation does not depend on their set-up.
var ours = func() map[string]bool {
	module, _, _ := strings.Cut(reflect.TypeFor[Pass]().PkgPath(), "/internal/")
	return map[string]bool{module + "/reconcilers": true, module + "/operator": true}
}()

// isOurs reports whether a type is defined in this module. It returns false for a user's type that embeds such a type
// or is defined from it.
func isOurs(nested any) bool {
	t := reflect.TypeOf(nested)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return ours[t.PkgPath()]
}
