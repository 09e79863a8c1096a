// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/internal/testkit/citations"
)

// notRules return errors without a rule of their own.
var notRules = []string{
	"Validate", "ValidateUpdate", "ValidateStatusUpdate", "remember", // call rules
	"inMapOrder", "inOrder", "invalid", "oneOf",
}

// TestRulesCiteUpstream checks that each rule for kinds names the functions of Kubernetes that it repeats, and that
// they exist in the version that the tests compare with.
func TestRulesCiteUpstream(t *testing.T) {
	isRule := func(f *ast.FuncDecl) bool {
		if slices.Contains(notRules, f.Name.Name) || f.Type.Results == nil || converts(f) {
			return false
		}
		for _, result := range f.Type.Results.List {
			if s, ok := result.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "ErrorList" {
				return true
			}
		}
		return false
	}
	if missing := citations.Missing(t, ".", "strategyOf", isRule); len(missing) > 0 {
		t.Errorf("without a citation of Kubernetes, see internal/testkit/citations:\n%s", strings.Join(missing, "\n"))
	}
	if diff := cmp.Diff([]string(nil), citations.Unknown(t, ".", "../../../controlplane")); diff != "" {
		t.Errorf("citations that Kubernetes does not have (-want +got):\n%s", diff)
	}
}

// converts reports whether a function only converts its arguments for the rules of another version.
func converts(f *ast.FuncDecl) bool {
	return f.Recv != nil && types.ExprString(f.Recv.List[0].Type) == "*convertedRules"
}
