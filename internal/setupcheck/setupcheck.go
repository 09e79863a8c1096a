// SPDX-License-Identifier: Apache-2.0

// Package setupcheck decides which parts of a tree of reconcilers are validated when: those of this module all at once, before anything is set up, and those of
// authors after their SetupWithManager, which may give them what their Validate asks for.
package setupcheck

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"runtime/debug"

	"github.com/go-logr/logr"

	"trueup.dev/internal/nilcheck"
	"trueup.dev/validation"
)

// Pass is the validation of a tree that is about to be set up.
type Pass struct {
	later []part
}

// part is a part of an author's own, to be validated once it is set up.
type part struct {
	ctx       context.Context
	validator validation.Validator
	prefix    string
}

// Problem is what is wrong with a part.
type Problem struct {
	// Prefix is the way to the part.
	Prefix string
	Err    error
}

type placeKey struct{}

// place is where in a tree a context is.
type place struct {
	pass *Pass // nil where nothing is ever set up
	// prefix is the way from the root.
	prefix string
}

// Begin returns a context to validate a tree with that is about to be set up, and the pass whose Rest is validated once it is. Where ctx asks for recursion
// already, so does the author: then nothing is put off.
func Begin(ctx context.Context) (context.Context, *Pass) {
	pass := &Pass{}
	if validation.IsRecursive(ctx) {
		return ctx, pass
	}
	return context.WithValue(validation.WithRecursive(ctx), placeKey{}, place{pass: pass}), pass
}

// NeverSetUp returns a context for parts that are not set up. Those of an author's own are not validated there, unless the author asks for it.
func NeverSetUp(ctx context.Context) context.Context {
	if here, ok := ctx.Value(placeKey{}).(place); ok && here.pass != nil {
		return context.WithValue(ctx, placeKey{}, place{prefix: here.prefix})
	}
	return ctx
}

// Part returns the validator of a nested part, and the context to call it with. It is nil when the part is not to be validated now.
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
		// From here on everything is validated, as the author's own Validate does it.
		here.pass.later = append(here.pass.later, part{context.WithValue(ctx, placeKey{}, nil), validator, way})
	}
	return ctx, nil
}

// Rest validates what was put off. It is called after the tree was set up.
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

// ours are the packages with reconcilers that need nothing of their set-up to be validated.
var ours = func() map[string]bool {
	module := path.Dir(path.Dir(reflect.TypeFor[Pass]().PkgPath()))
	return map[string]bool{module + "/reconcilers": true, module + "/operator": true}
}()

// isOurs reports whether a type is of this module. A type that embeds one is not, and neither is an author's own type for one.
func isOurs(nested any) bool {
	t := reflect.TypeOf(nested)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return ours[t.PkgPath()]
}
