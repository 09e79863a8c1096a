// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Reference identifies the objects to watch: one by Name, or all that match a Selector. Exactly one of the two must be
// set.
type Reference struct {
	// APIGroup of the watched objects, a DNS-1123 subdomain. Default is the core
	// group.
	APIGroup string

	// Kind of the watched objects. Required.
	Kind string

	// Namespace of the watched objects, a DNS-1123 label. Leave it empty for
	// cluster-scoped kinds. Together with a Selector, empty means any namespace.
	Namespace string

	// Name of the one object to watch, a DNS-1123 subdomain. The object need not exist yet.
	Name string

	// Selector for the labels of the objects to watch. Use labels.Everything() for all objects of the kind.
	Selector labels.Selector
}

func (r Reference) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.APIGroup, Kind: r.Kind}
}

// validate returns an error that lists every problem of the reference.
func (r Reference) validate() error {
	var problems []string
	add := func(field string, messages []string) {
		for _, message := range messages {
			problems = append(problems, field+": "+message)
		}
	}

	add("Kind", validation.IsCIdentifier(r.Kind))
	if r.APIGroup != "" {
		add("APIGroup", validation.IsDNS1123Subdomain(r.APIGroup))
	}
	if r.Namespace != "" {
		add("Namespace", validation.IsDNS1123Label(r.Namespace))
	}
	if r.Name != "" {
		add("Name", validation.IsDNS1123Subdomain(r.Name))
	}
	switch {
	case r.Name != "" && r.Selector != nil:
		problems = append(problems, "cannot provide both Name and Selector")
	case r.Name == "" && r.Selector == nil:
		problems = append(problems, "must provide either Name or Selector")
	}

	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return errors.New("invalid Reference:\n" + strings.Join(problems, "\n"))
}
