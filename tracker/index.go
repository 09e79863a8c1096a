// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"math"

	"k8s.io/apimachinery/pkg/labels"
	ops "k8s.io/apimachinery/pkg/selection"
)

// index finds the selectors that may match an object, without looking at those
// that require a label the object does not have. It holds each selector under
// one of its requirements, an object is looked up by each of its labels.
type index struct {
	// equal has selectors by key and value of a label; one that allows several
	// values is there for each.
	equal postings
	// present has selectors by the key of a label that must be present, whatever
	// its value. Those that require no label at all are there without a key.
	present postings
}

// selection is what a target has that is watched by selector.
type selection struct {
	// postings are where the index holds the target.
	postings []posting
	// only is room for the first of them.
	only [1]posting
	// rest are the requirements that an object must meet which was found where the
	// index holds the target.
	rest labels.Requirements
	// foreign is the selector when it is not one with requirements.
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

// label is where an index holds selectors.
type label struct{ namespace, key, value string }

// posting is a selector in an index.
type posting struct {
	in *postings
	at label
	// previous and next are the neighbours in the list.
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
	for i := range s.postings { // append moves them no more
		in.add(&s.postings[i])
	}
}

const (
	// mostValues is how many values a requirement may list and still be held under
	// each, more would cost too much memory.
	mostValues = 100

	// presencePenalty is how many selectors are rather held under one value of a
	// label than one under the presence of another: more objects have it.
	presencePenalty = 16
)

// placesFor chooses the requirement under which the fewest selectors are held,
// as many often have one label in common, like the name of an application, and
// differ in another. An object found there meets the requirement with the index
// met, which is -1 for none.
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
