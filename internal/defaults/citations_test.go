// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/internal/testkit/citations"
)

// withoutRules change objects without a rule of their own.
var withoutRules = []string{"Set", "SetPointer", "KeepUnset", "keepUnset", "Update", "fill", "fillOther", "filledFrom"}

// TestDefaultsCiteUpstream checks that each function that sets defaults of built-in kinds names the functions of
// Kubernetes that it repeats, and that they exist in the version that the tests compare with.
func TestDefaultsCiteUpstream(t *testing.T) {
	ofTypedObjects := func(f *ast.FuncDecl) bool {
		if f.Recv != nil || slices.Contains(withoutRules, f.Name.Name) || f.Type.Params == nil {
			return false
		}
		for _, parameter := range f.Type.Params.List {
			if isOfAPI(parameter.Type) {
				return true
			}
		}
		return false
	}
	if missing := citations.Missing(t, ".", "", ofTypedObjects); len(missing) > 0 {
		t.Errorf("without a citation of Kubernetes, see internal/testkit/citations:\n%s", strings.Join(missing, "\n"))
	}
	if diff := cmp.Diff([]string(nil), citations.Unknown(t, ".", "../../controlplane")); diff != "" {
		t.Errorf("citations that Kubernetes does not have (-want +got):\n%s", diff)
	}
}

// isOfAPI reports whether a type is one of a versioned package, like corev1.Pod, or a pointer to or a slice of it.
func isOfAPI(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return isOfAPI(e.X)
	case *ast.ArrayType:
		return isOfAPI(e.Elt)
	case *ast.SelectorExpr:
		of, ok := e.X.(*ast.Ident)
		return ok && of.Name != "schema" && strings.TrimRight(of.Name, "0123456789") != of.Name
	}
	return false
}
