// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/objects/nilcheck"
)

// Stuck is an object whose deletion waits for its finalizers to be removed.
type Stuck struct {
	world.ObjectOf

	Name    string
	Obj     client.Object
	Primary bool
	// holders describe its finalizers, and who has added them.
	holders []holder
	// waitsFor are others that it waits for.
	waitsFor []*Stuck
}

// holder is a finalizer, with who has added it.
type holder struct {
	finalizer string
	writer    world.Writer
	// unreleased is set if the object was created with the finalizer, and nothing in the scenario removes it: it is for a
	// controller that the scenario does not have. Its creator does not wait for anything.
	unreleased bool
}

// StuckObjects lists the objects that wait for their deletion. The objects of one kind are primary.
func (h History) StuckObjects(primary schema.GroupVersionKind) []*Stuck {
	var all []*Stuck
	for _, kind := range h.Server.Kinds() {
		for _, obj := range h.Server.List(kind) {
			if obj.GetDeletionTimestamp() == nil {
				continue
			}
			s := h.stuckObject(kind, obj)
			s.Primary = kind == primary
			all = append(all, s)
		}
	}
	return all
}

// stuckObject returns an object with what holds it.
func (h History) stuckObject(kind schema.GroupVersionKind, obj client.Object) *Stuck {
	s := &Stuck{
		ObjectOf: world.ObjectOf{Kind: kind, Key: client.ObjectKeyFromObject(obj)}, Name: h.Names.Thing(kind, obj).String(),
		Obj: obj,
	}
	for _, finalizer := range obj.GetFinalizers() {
		writer, created := h.addedBy(obj, finalizer)
		unreleased := created && !h.releases(FinalizerOf{kind, finalizer})
		s.holders = append(s.holders, holder{finalizer, writer, unreleased})
	}
	return s
}

// addedBy returns who has added a finalizer to an object, and whether the object was created with it.
func (h History) addedBy(obj client.Object, finalizer string) (writer world.Writer, created bool) {
	if finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents {
		return world.Writer{Client: "the garbage collector"}, false
	}
	events := h.Server.Events(0)
	at := slices.IndexFunc(events, func(e memapi.Event) bool {
		return e.Object.GetUID() == obj.GetUID() && slices.Contains(e.Object.GetFinalizers(), finalizer) &&
			(nilcheck.IsNil(e.Old) || !slices.Contains(e.Old.GetFinalizers(), finalizer))
	})
	if at < 0 {
		return world.Writer{}, false
	}
	created = nilcheck.IsNil(events[at].Old)
	if author, ok := h.authorOf(events[at].Version); ok {
		return author.By.Writer(events[at].Client), created
	}
	return world.Writer{Client: events[at].Client}, created
}

// releases reports whether a program or an actor has removed a finalizer, in this run or without faults.
func (h History) releases(f FinalizerOf) bool { return h.Released != nil && h.Released(f) }

// FindDependencies finds out which objects wait for which others. An owner that is deleted in the foreground waits for
// its dependents. For other finalizers, an object waits for others that are being deleted if the reconcile of who has
// added the finalizer reads or deletes them, and leaves the finalizer.
func FindDependencies(all []*Stuck, evidence world.Found) {
	for _, s := range all {
		for _, other := range all {
			if other != s && s.waits(other, evidence) {
				s.waitsFor = append(s.waitsFor, other)
			}
		}
	}
}

// waits reports whether an object waits for another one, by what reconciles have found.
func (s *Stuck) waits(other *Stuck, evidence world.Found) bool {
	return slices.ContainsFunc(s.holders, func(h holder) bool {
		if h.unreleased {
			return false
		}
		if h.finalizer == metav1.FinalizerDeleteDependents {
			return slices.ContainsFunc(other.Obj.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
				return owner.UID == s.Obj.GetUID() && owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion
			})
		}
		for by, objects := range evidence {
			if by.Client == h.writer.Client && by.Controller == h.writer.Controller &&
				(by.Key == s.Key || by.Key == h.writer.Key) && slices.Contains(objects, other.ObjectOf) {
				return true
			}
		}
		return false
	})
}

// Deadlock returns objects where each one waits for the next one, and the last one for the first one, or nil.
func Deadlock(all []*Stuck) []*Stuck {
	var path []*Stuck
	done := map[*Stuck]bool{}
	var visit func(s *Stuck) []*Stuck
	visit = func(s *Stuck) []*Stuck {
		if at := slices.Index(path, s); at >= 0 {
			return slices.Clone(path[at:])
		}
		if done[s] {
			return nil
		}
		done[s] = true
		path = append(path, s)
		defer func() { path = path[:len(path)-1] }()
		for _, next := range s.waitsFor {
			if found := visit(next); found != nil {
				return found
			}
		}
		return nil
	}
	for _, s := range all {
		if found := visit(s); found != nil {
			return found
		}
	}
	return nil
}

// String describes who holds an object.
func (s *Stuck) String() string {
	var holders []string
	for _, h := range s.holders {
		text := "the finalizer " + h.finalizer
		if h.writer.Client != "" {
			text += " of " + h.writer.Client
		}
		holders = append(holders, text)
	}
	text := s.Name + " is held by " + strings.Join(holders, " and ")
	var others []string
	for _, other := range s.waitsFor {
		others = append(others, other.Name)
	}
	if len(others) > 0 {
		text += ", waits for " + strings.Join(others, ", ")
	}
	return text
}

// missingControllers describes the finalizers that nothing in the scenario removes, of objects that are being deleted.
// It is the end of a message, or empty if there are none.
func missingControllers(all ...*Stuck) string {
	var lines []string
	for _, s := range all {
		if s.Obj.GetDeletionTimestamp() == nil {
			continue
		}
		for _, h := range s.holders {
			line := fmt.Sprintf("; no program of this scenario removes finalizer %s of kind %s: add its controller or an actor",
				h.finalizer, s.Kind.Kind)
			if h.unreleased && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "")
}

// Deadlocked returns the violation for a deadlock.
func Deadlocked(cycle []*Stuck) finding.Violation {
	var names, lines []string
	for _, s := range cycle {
		names, lines = append(names, s.Name), append(lines, s.String())
	}
	message := fmt.Sprintf("%s waits for itself", strings.Join(append(names, names[0]), ", which waits for "))
	if len(names) == 2 {
		message = fmt.Sprintf("%s and %s wait for each other", names[0], names[1])
	}
	return finding.Violation{
		Oracle: finding.OracleDeletion, Cause: finding.CauseDeadlock, About: names[0], Message: message + " to be deleted",
		Details: lines,
	}
}
