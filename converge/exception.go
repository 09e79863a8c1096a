// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// Exception disables a fault, or turns an oracle off, for some objects or in some steps.
type Exception struct {
	// Fault is not injected, or Oracle does not report. Exactly one of both is required.
	Fault  Fault
	Oracle Oracle
	// Object has the kind of the objects. Only its type matters. The default is all kinds.
	Object client.Object
	// Name is the name of an object, as findings have it: with its namespace and, if the API server generates it, its
	// prefix and an asterisk, for example "default/web-*". For a call outside of the cluster it is the name of the call,
	// and for a finding about [Cloud] it is "cloud" and the key. The default is all names.
	Name string
	// Step is the number of a step, from 1 on. A [SleepThen] counts as its parts. The default is all steps. It does not
	// apply to [OracleDuplicates], which checks the whole run.
	Step int
	// Reason is required and printed.
	Reason string
}

// exceptionOf is an exception and the name of its kind, or "".
type exceptionOf struct {
	Exception

	kind string
}

func (e exceptionOf) matches(kind, name string, step int) bool {
	return (e.kind == "" || e.kind == kind) && (e.Name == "" || e.Name == name) && (e.Step == 0 || e.Step == step)
}

// String describes an exception in the certificate.
func (e exceptionOf) String() string {
	text := "without " + string(e.Fault) + string(e.Oracle)
	if about := strings.TrimSpace(e.kind + " " + e.Name); about != "" {
		text += " of " + about
	}
	if e.Step > 0 {
		text += fmt.Sprintf(" in step %d", e.Step)
	}
	return text + ": " + e.Reason
}

// exceptions checks the exceptions.
func (c *scenarioCheck) exceptions() {
	for i, e := range c.Except {
		field := fmt.Sprintf("Except[%d]", i)
		switch {
		case (e.Fault == "") == (e.Oracle == ""):
			c.problem("%s: Fault or Oracle is required, and not both", field)
		case e.Fault != "" && !slices.Contains(inject.All, e.Fault):
			c.problem("%s: unknown fault %q", field, e.Fault)
		case e.Oracle != "" && !slices.Contains(allOracles, e.Oracle):
			c.problem("%s: unknown oracle %q", field, e.Oracle)
		}
		if e.Reason == "" {
			c.problem("%s: a reason is required", field)
		}
		if e.Object == nil && e.Name == "" && e.Step == 0 {
			c.problem("%s: Object, Name or Step is required; Without and Off are for all", field)
		}
		if e.Step < 0 || e.Step > len(c.Steps) {
			c.problem("%s.Step must be a number from 1 to %d, got %d", field, len(c.Steps), e.Step)
		}
		if e.Step > 0 && e.Oracle == OracleDuplicates {
			c.problem("%s.Step: %s checks the whole run", field, OracleDuplicates)
		}
		of := exceptionOf{Exception: e}
		if e.Object != nil {
			of.kind = c.kindOf(field+".Object", e.Object).Kind
		}
		c.except = append(c.except, of)
	}
}

// allowed returns the faults without those that exceptions disable at a site.
func (p *plan) allowed(s inject.Site, step int, faults inject.Set) inject.Set {
	for _, e := range p.except {
		kind, _, _ := strings.Cut(s.Kind, "/") // without the subresource
		name := phrase.Name(s.Key)
		if s.Act == "call" {
			kind, name = "", s.Kind
		}
		if e.Fault != "" && e.matches(kind, name, step+1) {
			faults &^= inject.SetOf(e.Fault)
		}
	}
	return faults
}

// excepts reports whether an exception turns an oracle off for what a finding is about.
func (p *plan) excepts(oracle Oracle, about string, step int) bool {
	for _, e := range p.except {
		if e.Oracle != oracle {
			continue
		}
		about := finding.Violation{About: about}.Object()
		kind, name, found := strings.Cut(about, " ")
		switch {
		case !found: // a request
			kind, name = p.primary.Kind, about
		case kind == "cloud":
			kind, name = "", about
		}
		if e.matches(kind, name, step+1) {
			return true
		}
	}
	return false
}
