// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// kind is a kind of mutation.
type kind string

const (
	negate  kind = "negate"         // if c → if !c
	equal   kind = "equal"          // == ↔ !=
	bound   kind = "bound"          // < ↔ <=, > ↔ >=
	logic   kind = "logic"          // && ↔ ||
	call    kind = "remove call"    // f() →
	failure kind = "nil error"      // return err → return nil
	literal kind = "other constant" // 1 → 2, "a" → "", true → false
)

var kinds = []kind{negate, equal, bound, logic, call, failure, literal}

// point is a place at which a mutation can be made, and the edits that make it.
type point struct {
	mutant
	edits func(number int) []edit
}

// edit replaces a part of a file, or inserts text if the part is empty.
type edit struct {
	from, to token.Pos
	text     string
	// closing text is inserted before other text at the same place, and the text of an inner point before the text of an
	// outer one.
	closing bool
}

// finder finds the points of one file.
type finder struct {
	set    *token.FileSet
	info   *types.Info
	source []byte
	file   string // relative to the module

	function string
	count    map[kind]int
	points   []point
}

// find returns the points of a file, outer ones before inner ones.
func find(set *token.FileSet, info *types.Info, syntax *ast.File, source []byte, file string) []point {
	f := &finder{set: set, info: info, source: source, file: file}
	counts := make(map[string]map[kind]int)
	for _, declaration := range syntax.Decls {
		f.function = "var"
		if d, ok := declaration.(*ast.FuncDecl); ok {
			f.function = functionName(d)
		} else if d, ok := declaration.(*ast.GenDecl); !ok || d.Tok != token.VAR {
			continue
		}
		if counts[f.function] == nil {
			counts[f.function] = make(map[kind]int)
		}
		f.count = counts[f.function]
		f.walk(declaration, nil)
	}
	return f.points
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// add adds a point at a node.
func (f *finder) add(k kind, n ast.Node, edits func(number int) []edit) {
	f.count[k]++
	text := strings.Join(strings.Fields(string(f.source[f.offset(n.Pos()):f.offset(n.End())])), " ")
	if runes := []rune(text); len(runes) > 70 {
		text = string(runes[:69]) + "…"
	}
	f.points = append(f.points, point{
		mutant: mutant{
			File: f.file, Function: f.function, Kind: k, Nth: f.count[k], Text: text, line: f.set.Position(n.Pos()).Line,
		},
		edits: edits,
	})
}

func (f *finder) offset(p token.Pos) int { return f.set.Position(p).Offset }

// walk visits a node of a function with these results.
func (f *finder) walk(root ast.Node, results *types.Tuple) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				f.walk(n.Body, f.info.Defs[n.Name].Type().(*types.Signature).Results())
			}
			return false
		case *ast.FuncLit:
			f.walk(n.Body, f.info.TypeOf(n).(*types.Signature).Results())
			return false
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.ArrayType, *ast.StructType:
			return false
		case *ast.CallExpr:
			return !f.logs(n)
		case *ast.KeyValueExpr:
			f.walk(n.Value, results)
			return false
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.BinaryExpr:
			f.binary(n)
			return n.Op != token.SHL && n.Op != token.SHR
		case *ast.BlockStmt:
			f.calls(n.List)
		case *ast.CaseClause:
			f.calls(n.Body)
		case *ast.CommClause:
			f.calls(n.Body)
		case *ast.ReturnStmt:
			f.returned(n, results)
		case *ast.BasicLit, *ast.Ident:
			f.constant(n.(ast.Expr))
		}
		return true
	})
}

func (f *finder) condition(c ast.Expr) {
	if b, ok := ast.Unparen(c).(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return // Negated by another kind.
	}
	f.add(negate, c, func(number int) []edit {
		return around(c, fmt.Sprintf("mutant.On(%d) != (", number), ")")
	})
}

func (f *finder) binary(b *ast.BinaryExpr) {
	if !f.plainBool(b) || f.info.Types[b].Value != nil {
		return
	}
	operator := edit{from: b.OpPos, to: b.OpPos + token.Pos(len(b.Op.String())), text: ","}
	switch b.Op {
	case token.EQL, token.NEQ:
		f.add(equal, b, func(number int) []edit {
			return around(b, fmt.Sprintf("(mutant.On(%d) != (", number), "))")
		})
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.add(bound, b, func(number int) []edit {
			return append(around(b, fmt.Sprintf("mutant.Bound(%d, %q, ", number, b.Op), ")"), operator)
		})
	case token.LAND, token.LOR:
		if !f.plainBool(b.X) || !f.plainBool(b.Y) {
			return
		}
		f.add(logic, b, func(number int) []edit {
			edits := around(b, fmt.Sprintf("mutant.Logic(%d, %q, ", number, b.Op), ")")
			return append(append(edits, operator), around(b.Y, "func() bool { return ", "}")...)
		})
	}
}

func (f *finder) plainBool(e ast.Expr) bool {
	basic, ok := types.Unalias(f.info.TypeOf(e)).(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// calls adds the statements that only call a function.
func (f *finder) calls(statements []ast.Stmt) {
	for _, s := range statements {
		statement, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		c, ok := statement.X.(*ast.CallExpr)
		if !ok || f.logs(c) || f.isPackage(c, "sync") {
			continue
		}
		if name, ok := c.Fun.(*ast.Ident); ok && f.info.Uses[name] == types.Universe.Lookup("panic") {
			continue
		}
		f.add(call, c, func(number int) []edit {
			return around(c, fmt.Sprintf("if !mutant.On(%d) { ", number), " }")
		})
	}
}

// logs reports whether a call logs. Tests need not find mistakes there.
func (f *finder) logs(c *ast.CallExpr) bool { return f.isPackage(c, "github.com/go-logr/logr") }

// isPackage reports whether a call is one of a method or function of the package.
func (f *finder) isPackage(c *ast.CallExpr, path string) bool {
	selector, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	used := f.info.Uses[selector.Sel]
	return used != nil && used.Pkg() != nil && used.Pkg().Path() == path
}

func (f *finder) returned(r *ast.ReturnStmt, results *types.Tuple) {
	if results.Len() == 0 || results.Len() != len(r.Results) {
		return
	}
	last := r.Results[len(r.Results)-1]
	if results.At(results.Len()-1).Type() != types.Universe.Lookup("error").Type() || f.info.Types[last].IsNil() {
		return
	}
	f.add(failure, last, func(number int) []edit {
		return around(last, fmt.Sprintf("mutant.Error(%d, ", number), ")")
	})
}

func (f *finder) constant(e ast.Expr) {
	tv, ok := f.info.Types[e]
	if !ok || tv.Value == nil {
		return
	}
	basic, ok := types.Unalias(tv.Type).(*types.Basic)
	if name, isName := e.(*ast.Ident); isName {
		if object := f.info.Uses[name]; object == nil || object.Parent() != types.Universe || !ok {
			return
		}
	}
	if !ok {
		return
	}
	var other string
	switch {
	case tv.Value.Kind() == constant.Bool:
		f.add(literal, e, func(number int) []edit {
			return around(e, fmt.Sprintf("(mutant.On(%d) != ", number), ")")
		})
		return
	case basic.Info()&types.IsUntyped != 0:
		return
	case tv.Value.Kind() == constant.Int && basic.Info()&types.IsInteger != 0:
		other = constant.BinaryOp(tv.Value, token.ADD, constant.MakeInt64(1)).ExactString()
	case tv.Value.Kind() == constant.String && constant.StringVal(tv.Value) == "":
		other = `"mutant"`
	case tv.Value.Kind() == constant.String:
		other = `""`
	default:
		return
	}
	f.add(literal, e, func(number int) []edit {
		return around(e, fmt.Sprintf("mutant.Constant[%s](%d, ", basic.Name(), number), ", "+other+")")
	})
}

// around inserts text before and after a node.
func around(n ast.Node, before, after string) []edit {
	return []edit{{from: n.Pos(), to: n.Pos(), text: before}, {from: n.End(), to: n.End(), text: after, closing: true}}
}
