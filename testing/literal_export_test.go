// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

// LiteralAndImports returns the literal of a value, and the packages it needs by name.
func LiteralAndImports(v any) (string, map[string]string) {
	p := newPrinter([]*runtime.Scheme{fixture.NewScheme()})
	expr := formatted(p.print(reflect.ValueOf(v), explicit))
	return expr, p.imports
}

// ComparePasted compares values to those they were printed from.
func ComparePasted(t *testing.T, pasted map[string]any) {
	t.Helper()
	values := LiteralValues()
	for name, value := range values {
		got, ok := pasted[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		if reflect.TypeOf(got) != reflect.TypeOf(value) {
			t.Errorf("%s is a %T, want %T", name, got, value)
		}
		if diff := cmp.Diff(
			value, got, reconcilers.IgnoreAllUnexported, NormalizeLabelSelector, NormalizeFieldSelector, cmpopts.EquateNaNs(),
		); diff != "" {
			t.Errorf("%s (-original +pasted):\n%s", name, diff)
		}
	}
}
