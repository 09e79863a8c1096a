// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each case is a function of type func(a, b int, p, q bool) error with one point for each number.
func TestMutations(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"condition": {
			body: `if p { return nil }; return nil`,
			want: `if mutant.On(1) != (p) { return nil }; return nil`,
		},
		"equality, which is not negated twice": {
			body: `if a == b { return nil }; return nil`,
			want: `if (mutant.On(1) != (a == b)) { return nil }; return nil`,
		},
		"bound": {
			body: `_ = a < b; return nil`,
			want: `_ = mutant.Bound(1, "<", a , b); return nil`,
		},
		"logic, with an operand on its own line": {
			body: "_ = p &&\n\tq; return nil",
			want: "_ = mutant.Logic(1, \"&&\", p ,\n\tfunc() bool { return q}); return nil",
		},
		"points in points, which begin and end together": {
			body: `_ = a == b || p && a < b; return nil`,
			want: `_ = mutant.Logic(1, "||", (mutant.On(2) != (a == b)) , func() bool { return ` +
				`mutant.Logic(3, "&&", p , func() bool { return mutant.Bound(4, "<", a , b)})}); return nil`,
		},
		"call without a result, but not panic": {
			body: `done(); panic(p)`,
			want: `if !mutant.On(1) { done() }; panic(p)`,
		},
		"error": {
			body: `return fail()`,
			want: `return mutant.Error(1, fail())`,
		},
		"error of a function literal": {
			body: `_ = func() (int, error) { return a, fail() }; return nil`,
			want: `_ = func() (int, error) { return a, mutant.Error(1, fail()) }; return nil`,
		},
		"results of a call": {
			body: `_ = func() (int, error) { return two() }; return nil`,
			want: `_ = func() (int, error) { return two() }; return nil`,
		},
		"constants, but not where the language requires them": {
			body: `const c = 1; var n [2]int; _, _, _, _ = n, a+3, "", true; return nil`,
			want: `const c = 1; var n [2]int; _, _, _, _ = n, a+mutant.Constant[int](1, 3, 4), ` +
				`mutant.Constant[string](2, "", "mutant"), (mutant.On(3) != true); return nil`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			const before = "package p; func done() {}; func fail() error { return nil }; " +
				"func two() (int, error) { return len(\"\"), nil }; "
			const head = "func f(a, b int, p, q bool) error { "
			content := before + head + tc.body + " }\n"
			set := token.NewFileSet()
			syntax, err := parser.ParseFile(set, "p.go", content, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			info := &types.Info{
				Types: make(map[ast.Expr]types.TypeAndValue),
				Defs:  make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
			}
			if _, err := new(types.Config).Check("p", set, []*ast.File{syntax}, info); err != nil {
				t.Fatal(err)
			}
			var edits []edit
			number := 0
			for _, p := range find(set, info, syntax, []byte(content), "p.go") {
				if p.Function == "f" {
					number++
					edits = append(edits, p.edits(number)...)
				}
			}
			got := string(apply(set, []byte(content), edits))
			if diff := cmp.Diff(before+head+tc.want+" }\n", got); diff != "" {
				t.Errorf("mutated source (-want +got):\n%s", diff)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), "p.go", got, parser.SkipObjectResolution); err != nil {
				t.Error(err)
			}
		})
	}
}
