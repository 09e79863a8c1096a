// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/sandbox"
)

// families returns sequences of owners and dependents, and of deletions.
type families struct{ *rand.Rand }

var members = []string{"a", "b", "c", "d", "e"}

func (f families) sequence() (sequence Sequence) {
	kinds := map[string]*Kind{}
	for i, name := range members {
		kinds[name] = []*Kind{configMaps, gizmos}[f.IntN(2)]
		o := Operation{Verb: Create, Kind: kinds[name], Name: name}
		var owners []any
		for _, owner := range members[:i] {
			if f.IntN(2) == 0 {
				owners = append(owners, ownerOf(kinds[owner], owner, f.IntN(3) > 0))
			}
		}
		if len(owners) > 0 {
			o.Edits = append(o.Edits, Set("metadata/ownerReferences", owners))
		}
		if f.IntN(3) == 0 {
			o.Edits = append(o.Edits, Set("metadata/finalizers", []any{"example.com/one"}))
		}
		sequence = append(sequence, o)
	}
	for range f.IntN(3) {
		sequence = append(sequence, f.adoption(kinds))
	}
	waiting := false
	for range 8 {
		name := members[f.IntN(len(members))]
		o := Operation{
			Verb: Delete, Kind: kinds[name], Name: name,
			Propagation: []string{"Foreground", "Foreground", "Foreground", "Background", "Orphan", ""}[f.IntN(6)],
		}
		switch f.IntN(5) {
		case 0:
			o = Operation{
				Verb: Patch, Kind: kinds[name], Name: name, Patch: MergePatch, Edits: []Edit{Remove("metadata/finalizers")},
			}
		case 1:
			if !waiting { // see TestLateDependents
				o = f.adoption(kinds)
			}
		case 2:
			o = Operation{Verb: Create, Kind: kinds[name], Name: name}
		}
		waiting = waiting || o.Propagation == "Foreground"
		sequence = append(sequence, o)
	}
	return sequence
}

// adoption adds an owner to a member, which may be one of its dependents, or the member.
func (f families) adoption(kinds map[string]*Kind) Operation {
	name, owner := members[f.IntN(len(members))], members[f.IntN(len(members))]
	return adopted(kinds[name], name, ownerOf(kinds[owner], owner, f.IntN(4) > 0))
}

func adopted(kind *Kind, name string, owner Object) Operation {
	return Operation{
		Verb: Patch, Kind: kind, Name: name, Patch: MergePatch, Edits: []Edit{Set("metadata/ownerReferences", []any{owner})},
	}
}

func ownerOf(kind *Kind, name string, blocks bool) Object {
	return Object{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "name": name,
		"uid":                string(TokenUIDOf) + kind.Kind + "/" + name,
		"blockOwnerDeletion": blocks,
	}
}

// census lists the objects with their finalizers and owners.
func census(ctx context.Context, c client.Client, namespace string) (string, error) {
	var items []unstructured.Unstructured
	for _, kind := range []*Kind{configMaps, gizmos} {
		list := newList(kind)
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return "", err
		}
		items = append(items, list.Items...)
	}
	var lines []string
	for _, item := range items {
		var owners []string
		for _, ref := range item.GetOwnerReferences() {
			owner := ref.Name
			if *ref.BlockOwnerDeletion {
				owner += "!"
			}
			if !slices.ContainsFunc(items, func(other unstructured.Unstructured) bool { return other.GetUID() == ref.UID }) {
				owner += "?"
			}
			owners = append(owners, owner)
		}
		finalizers := item.GetFinalizers()
		slices.Sort(finalizers)
		lines = append(
			lines,
			fmt.Sprintf(
				"%s/%s deleting=%t finalizers=%v owners=%v", item.GetKind(), item.GetName(), item.GetDeletionTimestamp() != nil,
				finalizers, owners,
			),
		)
	}
	return strings.Join(lines, "\n"), nil
}

// choices are the indexes of the collections that the collector did after each operation, among the possible ones.
type choices [][]int

// replay runs a sequence with a collector that makes these choices. It returns the remaining objects, and the number of
// possible collections.
func (o *ours) replay(ctx context.Context, sequence Sequence, made choices) (state string, options int, err error) {
	const namespace = "fidelity"
	model, server := o.startServer(ctx, namespace)
	model.Settle = func(_ context.Context, _ string, operation int) error {
		for _, choice := range made[operation] {
			if err := server.Collect(server.Garbage()[choice]); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := model.Run(ctx, namespace, sequence); err != nil {
		return "", 0, err
	}
	state, err = census(ctx, model.Client, namespace)
	return state, len(server.Garbage()), err
}

// ends returns all states that a collector can reach after the last operation of a sequence, with the choices that lead
// to them.
func (o *ours) ends(ctx context.Context, sequence Sequence, before choices) (map[string]choices, error) {
	ends, seen := map[string]choices{}, map[string]bool{}
	var visit func([]int) error
	visit = func(last []int) error {
		made := append(slices.Clone(before), last)
		state, options, err := o.replay(ctx, sequence, made)
		if err != nil || seen[state] {
			return err
		}
		if seen[state] = true; options == 0 {
			ends[state] = made
		}
		for choice := range options {
			if err := visit(append(slices.Clone(last), choice)); err != nil {
				return err
			}
		}
		return nil
	}
	return ends, visit(nil)
}

// The state that the real collector reaches, after each operation, is one of the states that ours can reach. Several
// are possible because the real one works concurrently: dependents that do not block their owner are deleted before or
// after it, an object with two owners loses one of them or is deleted with both, and an object in a cycle is unblocked
// and then deleted while its owner waits for it, or afterwards.
func TestGarbage(t *testing.T) {
	const patience = 20 * time.Second
	real := newRealServer(t, sandbox.Options{Controllers: []string{"garbage-collector-controller"}, DisablePods: true})
	ours := newOurs(t)
	n, deletions, forks := max(4, *sequences/100), 0, 0
	for i := range n {
		sequence := families{rand.New(rand.NewPCG(*seed, uint64(i)))}.sequence()
		var made choices
		server := real.Server
		server.Settle = func(ctx context.Context, namespace string, operation int) error {
			ends, err := ours.ends(ctx, sequence[:operation+1], made)
			if err != nil {
				return err
			}
			if len(ends) > 1 {
				forks++
			}
			// An object without its owner is collected approximately in order.
			if err := collected(ctx, server.Client, namespace); err != nil {
				return err
			}
			deadline := time.Now().Add(patience)
			for {
				state, err := census(ctx, server.Client, namespace)
				if err != nil {
					return err
				}
				if chosen, ok := ends[state]; ok {
					made = chosen
					deletions += len(members) - strings.Count(state, "deleting=false")
					return nil
				}
				if time.Now().After(deadline) {
					return fmt.Errorf("real:\n%s\nours:\n%s", state, strings.Join(slices.Sorted(maps.Keys(ends)), "\nor\n"))
				}
			}
		}
		namespace, err := real.newNamespace(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.Run(t.Context(), namespace, sequence); err != nil {
			var lines []string
			for i, o := range sequence {
				lines = append(lines, fmt.Sprintf("%d %s", i+1, o))
			}
			t.Errorf("sequence %d:\n%s\n%v", i, strings.Join(lines, "\n"), err)
		}
	}
	t.Logf("%d sequences, %d operations with several ends", n, forks)
	if deletions == 0 {
		t.Error("nothing was deleted")
	}
}

// An object that gets an owner which already waits is deleted at once in ours. The real collector does not process it
// before another dependent is deleted.
func TestLateDependents(t *testing.T) {
	sequence := Sequence{
		{Verb: Create, Kind: configMaps, Name: "a"},
		{Verb: Create, Kind: configMaps, Name: "b", Edits: []Edit{
			Set("metadata/ownerReferences", []any{
				ownerOf(configMaps, "a", true),
			}), Set("metadata/finalizers", []any{"example.com/one"}),
		}},
		{Verb: Create, Kind: configMaps, Name: "c"},
		{Verb: Delete, Kind: configMaps, Name: "a", Propagation: "Foreground"},
		adopted(configMaps, "c", ownerOf(configMaps, "a", true)),
		{Verb: Patch, Kind: configMaps, Name: "b", Patch: MergePatch, Edits: []Edit{Remove("metadata/finalizers")}},
	}
	const late = "ConfigMap/c deleting=false finalizers=[] owners=[a!]"
	ends, err := newOurs(t).ends(t.Context(), sequence[:5], make(choices, 4))
	if err != nil {
		t.Fatal(err)
	}
	for end := range ends {
		if strings.Contains(end, late) {
			t.Errorf("ours can keep the late dependent, too:\n%s", end)
		}
	}
	real := newRealServer(t, sandbox.Options{Controllers: []string{"garbage-collector-controller"}, DisablePods: true})
	server := real.Server
	server.Settle = func(ctx context.Context, namespace string, operation int) error {
		if err := collected(ctx, server.Client, namespace); err != nil {
			return err
		}
		state, err := census(ctx, server.Client, namespace)
		for operation == 5 && err == nil && state != "" { // with the last one that was there before, all go
			state, err = census(ctx, server.Client, namespace)
		}
		if operation == 4 && !strings.Contains(state, late) {
			t.Errorf("the real one did not keep the late dependent:\n%s", state)
		}
		return err
	}
	namespace, err := real.newNamespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Run(t.Context(), namespace, sequence); err != nil {
		t.Fatal(err)
	}
}

// collected waits until the garbage collector has processed all current garbage.
func collected(ctx context.Context, c client.Client, namespace string) error {
	garbage := &unstructured.Unstructured{Object: Object{}}
	garbage.SetGroupVersionKind(secrets.GroupVersionKind)
	garbage.SetNamespace(namespace)
	garbage.SetGenerateName("garbage-")
	garbage.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "missing", UID: "00000000-0000-0000-0000-00000000dead"},
	})
	if err := c.Create(ctx, garbage); err != nil {
		return err
	}
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(garbage), garbage); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
}
