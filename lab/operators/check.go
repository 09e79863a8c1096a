// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"trueup.dev/converge"
)

var updateFlag = flag.Bool("update", false, "record the outcomes and write the table instead of comparing with them")

// Scenario is a controller of a public operator, and what converge is known to find.
type Scenario struct {
	// Module is the path of the Go module of the operator. Required.
	Module string
	// Controller names the controller in the table. Required.
	Controller string
	// Converge is the scenario. Required.
	Converge converge.Scenario
	// Finding is the known finding. The default is none: the controller converges.
	Finding *Finding
}

// Finding is a violation that converge finds.
type Finding struct {
	Oracle converge.Oracle
	Cause  converge.Cause
	// Observed describes what was observed under which fault. Required.
	Observed string
	// Server is the test that shows it with a real API server, if there is one.
	Server string
	// Issue is the URL of the issue of the operator, if a public one exists.
	Issue string
}

// Check searches for failures with the default options. It fails the test if the outcome is not the expected one, and
// if results.json has another one.
func Check(t *testing.T, s Scenario) {
	t.Helper()
	if replay := flag.Lookup("converge.replay"); replay.Value.String() != "" {
		converge.Run(t, s.Converge)
		return
	}
	started := time.Now()
	report, err := converge.Check(t, s.Converge, converge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	version, err := versionOf(s.Module)
	if err != nil {
		t.Fatal(err)
	}
	directory, lines := testOf(t)
	got := Result{
		Directory: directory, Test: t.Name(), Lines: lines, Module: s.Module, Version: version, Controller: s.Controller,
		Points: report.Certificate.Points, Schedules: report.Certificate.Schedules,
		Seconds: time.Since(started).Seconds(), LeftOut: report.Certificate.LeftOut,
	}
	switch failure, want := report.Failure, s.Finding; {
	case failure == nil && want == nil:
		t.Log(report.Certificate.String())
	case failure == nil:
		t.Errorf("converge finds nothing, want %s (%s): %s", want.Oracle, want.Cause, report.Certificate)
		return
	case want == nil || failure.Violation.Oracle != want.Oracle || failure.Violation.Cause != want.Cause:
		t.Errorf("%s (%s)\n%sreplay: %s", failure.Violation.Oracle, failure.Violation.Cause, failure, failure.Replay)
		return
	default:
		t.Log(failure)
		got.Finding = fmt.Sprintf("%s (%s)", want.Oracle, want.Cause)
		got.Observed, got.Server, got.Issue, got.Replay = want.Observed, want.Server, want.Issue, failure.Replay
	}
	if err := record(got, *updateFlag); err != nil {
		t.Error(err)
	}
}

// Updating reports whether outcomes are recorded.
func Updating() bool { return *updateFlag }

// testOf returns the directory of the test function that calls Check, and the number of its lines. It adds the lines of
// functions of the file that return the Scenario.
func testOf(t *testing.T) (directory string, lines int) {
	t.Helper()
	for skip := 2; ; skip++ {
		_, file, _, ok := runtime.Caller(skip)
		if !ok {
			t.Fatal("Check must be called by a test function")
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			continue // not the file of a test
		}
		found := false
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			isTest := function.Name.Name == t.Name()
			if isTest || returnsScenario(function) {
				lines += files.Position(function.End()).Line - files.Position(function.Pos()).Line + 1
			}
			found = found || isTest
		}
		if found {
			return filepath.Base(filepath.Dir(file)), lines
		}
		lines = 0
	}
}

func returnsScenario(function *ast.FuncDecl) bool {
	if function.Type.Results == nil || len(function.Type.Results.List) != 1 {
		return false
	}
	result, ok := function.Type.Results.List[0].Type.(*ast.SelectorExpr)
	return ok && result.Sel.Name == "Scenario"
}
