// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"fmt"
	"strings"
)

// Verb is the verb of an operation.
type Verb string

// The verbs of a client.
const (
	Create      Verb = "create"
	Get         Verb = "get"
	List        Verb = "list"
	Update      Verb = "update"
	Patch       Verb = "patch"
	Apply       Verb = "apply"
	Delete      Verb = "delete"
	DeleteAllOf Verb = "deleteAllOf"

	// Send sends an HTTP request that no client sends.
	Send Verb = "send"
)

// Form is the form of an object in a call.
type Form string

// The forms. A kind without a Go type is unstructured where a sequence says typed.
const (
	Typed        Form = ""
	Unstructured Form = "unstructured"
	Metadata     Form = "metadata"
)

// Base is the starting point of an operation.
type Base string

// The bases. If the object was never seen, the base is Blank.
const (
	Blank Base = ""           // the content of the kind
	Last  Base = "last seen"  // what the last response showed
	First Base = "first seen" // what the first response showed, since when it may have changed
	Live  Base = "live"       // what a get shows now
)

// Token is a string in an edit that is replaced by a value that the sequence has seen of the object.
type Token string

// The tokens.
const (
	TokenUID          Token = "$uid"
	TokenVersion      Token = "$version"      // the last seen resource version
	TokenFirstVersion Token = "$firstVersion" // the first seen
	TokenNamespace    Token = "$namespace"    // the namespace of the sequence
	TokenAnother      Token = "$another"      // the name of an object that no operation is about
	TokenUIDOf        Token = "$uid:"         // before the kind and the name of another object, as in ConfigMap/a
)

// Nowhere is a namespace that does not exist.
const Nowhere = "nowhere"

// PatchTypes are the types of patches of operations.
const (
	JSONPatch      = "json"
	MergePatch     = "merge"
	StrategicPatch = "strategic"
	ApplyPatch     = "apply" // by Patch rather than by Apply
)

// An Operation is a call of a client. It is data, so that a sequence can be printed, shrunk and run on another server.
type Operation struct {
	Verb        Verb
	Kind        *Kind
	Subresource string // "status", "scale", "eviction"
	Name        string // $1 is the first name that a server made up for an object of the kind, $2 the second
	Namespace   string // instead of the namespace of the sequence
	Form        Form
	Base        Base
	Edits       []Edit // of the base, or the content of a patch
	Patch       string // the type of a patch
	Tests       []Edit // that a JSON patch makes first

	Owner  string // the field manager, instead of the client's own
	Force  bool
	DryRun bool

	// of deletions
	UID, Version string // preconditions, tokens or values
	Propagation  string
	Grace        *int64

	// of requests that are sent without a client; the body of a DELETE has only the edits, and a GET has none
	Method, Media, Query string

	// of lists, and of deletions of all
	Labels, Fields string
	Limit          int64
}

// String describes an operation in one line.
func (o Operation) String() string {
	var b strings.Builder
	b.WriteString(string(o.Verb))
	if o.Patch != "" {
		b.WriteString(" (" + o.Patch + ")")
	}
	b.WriteString(" " + o.Kind.Kind)
	if o.Name != "" {
		b.WriteString("/" + o.Name)
	}
	if o.Subresource != "" {
		b.WriteString(" " + o.Subresource)
	}
	var notes []string
	note := func(format string, value any, is bool) {
		if is {
			notes = append(notes, fmt.Sprintf(format, value))
		}
	}
	note("namespace %s", o.Namespace, o.Namespace != "")
	note("%s", o.Form, o.Form != Typed)
	note("%s", o.Base, o.Base != Blank)
	note("tests %v", o.Tests, len(o.Tests) > 0)
	note("%v", o.Edits, len(o.Edits) > 0)
	note("manager %s", o.Owner, o.Owner != "")
	note("force%s", "", o.Force)
	note("if uid %s", o.UID, o.UID != "")
	note("if version %s", o.Version, o.Version != "")
	note("%s", o.Propagation, o.Propagation != "")
	if o.Grace != nil {
		note("grace %d s", *o.Grace, true)
	}
	note("%s", o.Method, o.Method != "")
	note("media type %s", o.Media, o.Media != "")
	note("query %s", o.Query, o.Query != "")
	note("labels %q", o.Labels, o.Labels != "")
	note("fields %q", o.Fields, o.Fields != "")
	note("limit %d", o.Limit, o.Limit != 0)
	note("dry run%s", "", o.DryRun)
	if len(notes) > 0 {
		b.WriteString(": " + strings.Join(notes, ", "))
	}
	return b.String()
}

// A Sequence starts in an empty namespace.
type Sequence []Operation

// Kinds returns the kinds of the operations without duplicates, by first use.
func (s Sequence) Kinds() []*Kind {
	var kinds []*Kind
	seen := map[*Kind]bool{}
	for _, o := range s {
		if !seen[o.Kind] {
			seen[o.Kind] = true
			kinds = append(kinds, o.Kind)
		}
	}
	return kinds
}
