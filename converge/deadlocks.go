// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/nilcheck"
)

// found are the objects that the reconciles of each request have found to exist.
type found map[writer][]objectOf

// objectOf identifies an object.
type objectOf struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

// stuck is an object whose deletion waits for its finalizers to be removed.
type stuck struct {
	objectOf

	name    string
	obj     client.Object
	primary bool
	// holders describe its finalizers, and who has added them.
	holders []holder
	// waitsFor are others that it waits for.
	waitsFor []*stuck
}

// holder is a finalizer, with who has added it.
type holder struct {
	finalizer string
	writer    writer
}

// stuckObjects lists the objects that wait for their deletion. Those of one kind are primary.
func (h eventHistory) stuckObjects(primary schema.GroupVersionKind) []*stuck {
	var all []*stuck
	for _, kind := range h.server.Kinds() {
		for _, obj := range h.server.List(kind) {
			if obj.GetDeletionTimestamp() == nil {
				continue
			}
			s := &stuck{
				objectOf: objectOf{kind, client.ObjectKeyFromObject(obj)}, name: h.names.Thing(kind, obj).String(),
				obj: obj, primary: kind == primary,
			}
			for _, finalizer := range obj.GetFinalizers() {
				s.holders = append(s.holders, holder{finalizer, h.addedBy(obj, finalizer)})
			}
			all = append(all, s)
		}
	}
	return all
}

// addedBy returns who has added a finalizer to an object.
func (h eventHistory) addedBy(obj client.Object, finalizer string) writer {
	if finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents {
		return writer{client: "the garbage collector"}
	}
	events := h.server.Events(0)
	at := slices.IndexFunc(events, func(e memapi.Event) bool {
		return e.Object.GetUID() == obj.GetUID() && slices.Contains(e.Object.GetFinalizers(), finalizer) &&
			(nilcheck.IsNil(e.Old) || !slices.Contains(e.Old.GetFinalizers(), finalizer))
	})
	if at < 0 {
		return writer{}
	}
	if author, ok := h.authorOf(events[at].Version); ok {
		return author.by.writer(events[at].Client)
	}
	return writer{client: events[at].Client}
}

// findDependencies finds out which objects wait for which others. An owner that is deleted in the foreground waits for
// its dependents. For other finalizers, an object waits for others that are being deleted if the reconcile of who has
// added the finalizer reads or deletes them, and leaves the finalizer.
func findDependencies(all []*stuck, evidence found) {
	for _, s := range all {
		for _, other := range all {
			if other != s && s.waits(other, evidence) {
				s.waitsFor = append(s.waitsFor, other)
			}
		}
	}
}

// waits reports whether an object waits for another one, by what reconciles have found.
func (s *stuck) waits(other *stuck, evidence found) bool {
	return slices.ContainsFunc(s.holders, func(h holder) bool {
		if h.finalizer == metav1.FinalizerDeleteDependents {
			return slices.ContainsFunc(other.obj.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
				return owner.UID == s.obj.GetUID() && owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion
			})
		}
		for by, objects := range evidence {
			if by.client == h.writer.client && by.controller == h.writer.controller &&
				(by.key == s.key || by.key == h.writer.key) && slices.Contains(objects, other.objectOf) {
				return true
			}
		}
		return false
	})
}

// deadlock returns objects each of which waits for the next one, and the last one for the first one, or nil.
func deadlock(all []*stuck) []*stuck {
	var path []*stuck
	done := map[*stuck]bool{}
	var visit func(s *stuck) []*stuck
	visit = func(s *stuck) []*stuck {
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
func (s *stuck) String() string {
	var holders []string
	for _, h := range s.holders {
		text := "the finalizer " + h.finalizer
		if h.writer.client != "" {
			text += " of " + h.writer.client
		}
		holders = append(holders, text)
	}
	text := s.name + " is held by " + strings.Join(holders, " and ")
	var others []string
	for _, other := range s.waitsFor {
		others = append(others, other.name)
	}
	if len(others) > 0 {
		text += ", waits for " + strings.Join(others, ", ")
	}
	return text
}

// deadlocked returns the violation for a deadlock.
func deadlocked(cycle []*stuck) finding.Violation {
	var names, lines []string
	for _, s := range cycle {
		names, lines = append(names, s.name), append(lines, s.String())
	}
	message := fmt.Sprintf("%s waits for itself", strings.Join(append(names, names[0]), ", which waits for "))
	if len(names) == 2 {
		message = fmt.Sprintf("%s and %s wait for each other", names[0], names[1])
	}
	return finding.Violation{
		Oracle: finding.OracleDeletion, Cause: finding.CauseDeadlock, About: names[0], Message: message + " to be deleted", Details: lines,
	}
}
