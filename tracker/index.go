// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"math"

	"k8s.io/apimachinery/pkg/labels"
	ops "k8s.io/apimachinery/pkg/selection"
)

// index finds the selectors that may match an object, without evaluating those that require a label the object does not
// have. It holds each selector under one of its requirements. An object is looked up by each of its labels.
type index struct {
	// equal holds selectors by key and value of a label. A selector that allows several values is stored under each of
	// them.
	equal postings
	// present holds selectors by the key of a label that must be present with any value. Selectors that require no label
	// are stored under the empty key.
	present postings
}

// selection holds the state of a target that is watched by selector.
type selection struct {
	// postings are the entries of the target in the index.
	postings []posting
	// only is memory for the first posting.
	only [1]posting
	// rest holds the requirements that remain to be checked for an object found in the index.
	rest labels.Requirements
	// foreign is the selector if it does not consist of requirements.
	foreign labels.Selector
}

func (s *selection) matches(set labels.Set) bool {
	for i := range s.rest {
		if !s.rest[i].Matches(set) {
			return false
		}
	}
	return s.foreign == nil || s.foreign.Matches(set)
}

// label is the key of a list in the index.
type label struct{ namespace, key, value string }

// posting is a selector in an index.
type posting struct {
	in *postings
	at label
	// previous and next are the neighbors in the list.
	previous, next *posting
	target         *target
}

type list struct {
	first  *posting
	length int
}

type postings struct{ table[label, list] }

func (p *postings) add(post *posting) {
	l := p.entries[post.at]
	if l.first != nil {
		l.first.previous = post
	}
	post.next = l.first
	p.put(post.at, list{first: post, length: l.length + 1})
}

func (p *postings) remove(post *posting) {
	l := p.entries[post.at]
	if l.length == 1 {
		p.table.remove(post.at)
		return
	}
	if post.previous == nil {
		l.first = post.next
	} else {
		post.previous.next = post.next
	}
	if post.next != nil {
		post.next.previous = post.previous
	}
	p.entries[post.at] = list{first: l.first, length: l.length - 1}
}

func (x *index) add(on *target, selector labels.Selector) {
	requirements, ok := requirementsOf(selector)
	in, places, met := x.placesFor(on.name.Namespace, requirements)
	s := on.selection
	if !ok {
		s.foreign = selector
	}
	for i := range requirements {
		if i != met {
			s.rest = append(s.rest, requirements[i])
		}
	}
	s.postings = s.only[:0]
	for _, at := range places {
		s.postings = append(s.postings, posting{target: on, in: in, at: at})
	}
	for i := range s.postings { // append no longer moves them
		in.add(&s.postings[i])
	}
}

const (
	// mostValues is the largest number of values for which a requirement is stored under each value. More would use too
	// much memory.
	mostValues = 100

	// presencePenalty is how many more selectors a value of a label may have than the presence of a label and still be
	// chosen: more objects match a presence.
	presencePenalty = 16
)

// placesFor chooses the requirement under which the fewest selectors are stored. Many selectors often share one label,
// like the name of an application, and differ in another. The requirement with the index met is met by every object
// found there; met is -1 if no requirement is.
func (x *index) placesFor(namespace string, requirements labels.Requirements) (in *postings, places []label, met int) {
	in, places, met = &x.present, []label{{namespace: namespace}}, -1
	least := math.MaxInt
	for i := range requirements {
		requirement := &requirements[i]
		at := label{namespace: namespace, key: requirement.Key()}
		values := sorted(requirement.ValuesUnsorted())
		switch operator := meaning(requirement.Operator()); {
		case operator == ops.In && len(values) <= mostValues:
			length := 0
			each := make([]label, len(values))
			for v, value := range values {
				at.value = value
				each[v] = at
				length = max(length, x.equal.entries[at].length)
			}
			if length < least {
				in, places, met, least = &x.equal, each, i, length
			}
		case operator == ops.In, operator == ops.Exists, operator == ops.GreaterThan, operator == ops.LessThan:
			length := presencePenalty * (x.present.entries[at].length + 1)
			if length >= least {
				continue
			}
			in, places, met, least = &x.present, []label{at}, -1, length
			if operator == ops.Exists {
				met = i
			}
		}
	}
	return in, places, met
}

// find adds the observers of the selectors that match the labels.
func (x *index) find(namespace string, set labels.Set, found *finding) {
	if len(x.equal.entries) != 0 {
		for key, value := range set {
			x.equal.find(label{namespace, key, value}, set, found)
		}
	}
	if len(x.present.entries) != 0 {
		for key := range set {
			x.present.find(label{namespace: namespace, key: key}, set, found)
		}
		x.present.find(label{namespace: namespace}, set, found)
	}
}

func (p *postings) find(at label, set labels.Set, found *finding) {
	for post := p.entries[at].first; post != nil; post = post.next {
		if post.target.selection.matches(set) {
			found.add(post.target)
		}
	}
}
