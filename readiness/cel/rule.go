// SPDX-License-Identifier: Apache-2.0

// Package cel reports how ready an object is with expressions of the Common Expression Language (CEL), which Kubernetes
// also uses in validation rules. Only programs that import this package contain cel-go.
package cel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/readiness"
)

var _ readiness.Rule = (*Rule)(nil)

// DefaultCostLimit is the default of [Rule.CostLimit]. Kubernetes has the same limit for one expression.
const DefaultCostLimit = 1_000_000

// Rule is a [readiness.Rule] of expressions. The variable object is the object as in YAML. The extensions for strings,
// lists, sets and numbers are available, and optional values: object.?status.?phase.orValue("").
//
// An object that is being deleted is Terminating, and one whose status.observedGeneration is not the current generation
// is Progressing. No expression is evaluated then. An expression that fails, for example because a field does not
// exist, makes the object Unknown, which is not ready.
//
// Do not change a Rule after its first use. It is safe for concurrent use.
type Rule struct {
	// Ready is an expression that decides whether the object is ready. Required.
	Ready string
	// Failed is an expression that decides whether the object has failed. It is evaluated if Ready is false. Optional.
	Failed string
	// Message is an expression for the message of an object that is not ready. Defaults to a message that names the
	// expression Ready.
	Message string
	// CostLimit limits the cost of one evaluation of one expression, in the units of CEL. An expression that exceeds it
	// fails. Defaults to [DefaultCostLimit].
	CostLimit uint64

	compileOnce            sync.Once
	err                    error
	ready, failed, message cel.Program
	observed               readiness.Rule
}

// Validate compiles the expressions. The error names all that cannot be compiled.
func (r *Rule) Validate(context.Context) error {
	r.compile()
	return r.err
}

// Of reports how ready an object is.
func (r *Rule) Of(obj client.Object) readiness.Readiness {
	r.compile()
	if r.err != nil {
		return unknown(r.err)
	}
	return r.observed.Of(obj)
}

func (r *Rule) compile() {
	r.compileOnce.Do(func() {
		r.observed = readiness.Observed(readiness.Func(r.evaluate))
		env, err := cel.NewEnv(
			cel.Variable("object", cel.DynType), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
			ext.Strings(), ext.Lists(), ext.Sets(), ext.Math(),
		)
		if err != nil {
			r.err = err
			return
		}
		limit := cmp.Or(r.CostLimit, DefaultCostLimit)
		errs := []error{}
		program := func(field, text string, want *cel.Type) cel.Program {
			if text == "" {
				return nil
			}
			program, err := compile(env, text, want, limit)
			if err != nil {
				errs = append(errs, fmt.Errorf("unable to compile %s: %w", field, err))
			}
			return program
		}
		if r.Ready == "" {
			errs = append(errs, errors.New("rule must define Ready"))
		}
		r.ready = program("Ready", r.Ready, cel.BoolType)
		r.failed = program("Failed", r.Failed, cel.BoolType)
		r.message = program("Message", r.Message, cel.StringType)
		r.err = errors.Join(errs...)
	})
}

func compile(env *cel.Env, text string, want *cel.Type, limit uint64) (cel.Program, error) {
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if got := ast.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("result must be %s, got %s: %s", want, got, text)
	}
	return env.Program(ast, cel.CostLimit(limit))
}

func (r *Rule) evaluate(obj client.Object) readiness.Readiness {
	content, err := contentOf(obj)
	if err != nil {
		return unknown(err)
	}
	ready, err := value[bool](r.ready, content)
	switch {
	case err != nil:
		return unknown(err)
	case ready:
		return readiness.Readiness{State: readiness.Ready, Reason: readiness.ReasonReady}
	}
	not := readiness.Readiness{
		State: readiness.Progressing, Reason: readiness.ReasonPending, Message: "it is not true that " + r.Ready,
	}
	if r.failed != nil {
		failed, err := value[bool](r.failed, content)
		if err != nil {
			return unknown(err)
		}
		if failed {
			not.State, not.Reason, not.Message = readiness.Failed, readiness.ReasonFailed, "it is true that "+r.Failed
		}
	}
	if r.message != nil {
		message, err := value[string](r.message, content)
		if err != nil {
			return unknown(err)
		}
		not.Message = message
	}
	return not
}

// value evaluates an expression.
func value[T bool | string](program cel.Program, content map[string]any) (T, error) {
	var none T
	result, _, err := program.Eval(map[string]any{"object": content})
	if err != nil {
		return none, err
	}
	if types.IsUnknownOrError(result) {
		return none, fmt.Errorf("unexpected result %v", result)
	}
	got, ok := result.Value().(T)
	if !ok {
		return none, fmt.Errorf("result must be %T, got %s", none, result.Type().TypeName())
	}
	return got, nil
}

func contentOf(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

func unknown(err error) readiness.Readiness {
	return readiness.Readiness{
		State: readiness.Unknown, Reason: "ExpressionFailed", Message: "unable to evaluate the rule: " + err.Error(),
	}
}
