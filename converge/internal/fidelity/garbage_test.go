// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/sandbox"
)

// families makes sequences of owners and what they own, and of deletions.
type families struct{ *rand.Rand }

var members = []string{"a", "b", "c", "d", "e"}

func (f families) sequence() (sequence Sequence) {
	kinds := map[string]*Kind{}
	for i, name := range members {
		kinds[name] = []*Kind{configMaps, gizmos}[f.IntN(2)]
		o := Operation{Verb: Create, Kind: kinds[name], Name: name}
		var owners []any
		for _, owner := range members[:i] {
			if f.IntN(3) == 0 {
				owners = append(owners, f.owner(kinds[owner], owner))
			}
		}
		if len(owners) > 0 {
			o.Edits = append(o.Edits, Set("metadata/ownerReferences", owners))
		}
		if f.IntN(4) == 0 {
			o.Edits = append(o.Edits, Set("metadata/finalizers", []any{"example.com/one"}))
		}
		sequence = append(sequence, o)
	}
	for range 8 {
		name := members[f.IntN(len(members))]
		o := Operation{Verb: Delete, Kind: kinds[name], Name: name, Propagation: []string{"Background", "Foreground", "Orphan", ""}[f.IntN(4)]}
		switch f.IntN(5) {
		case 0:
			o = Operation{Verb: Patch, Kind: kinds[name], Name: name, Patch: MergePatch, Edits: []Edit{Remove("metadata/finalizers")}}
		case 1:
			// Never in a circle, which the real collector breaks by guessing.
			i := 1 + f.IntN(len(members)-1)
			name := members[i]
			owner := members[f.IntN(i)]
			o = Operation{Verb: Patch, Kind: kinds[name], Name: name, Patch: MergePatch, Edits: []Edit{
				Set("metadata/ownerReferences", []any{f.owner(kinds[owner], owner)}),
			}}
		case 2:
			o = Operation{Verb: Create, Kind: kinds[name], Name: name}
		}
		sequence = append(sequence, o)
	}
	return sequence
}

func (f families) owner(kind *Kind, name string) Object {
	owner := Object{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "name": name, "uid": string(TokenUIDOf) + kind.Kind + "/" + name}
	// What does not block its owner's deletion goes before it or after it, or stays as long as the owner is held by a finalizer: with the real collector that
	// depends on which of them it happens to look at first.
	owner["blockOwnerDeletion"] = true
	return owner
}

// census tells what there is, and what keeps it.
func census(ctx context.Context, c client.Client, namespace string) (lines []string, err error) {
	for _, kind := range []*Kind{configMaps, gizmos} {
		list := newList(kind)
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			item := &list.Items[i]
			var owners []string
			for _, owner := range item.GetOwnerReferences() {
				owners = append(owners, owner.Name)
			}
			finalizers := item.GetFinalizers()
			slices.Sort(finalizers)
			lines = append(lines, fmt.Sprintf("%s/%s deleting=%t finalizers=%v owners=%v", kind.Kind, item.GetName(), item.GetDeletionTimestamp() != nil, finalizers, owners))
		}
	}
	return lines, nil
}

// What is left of owners and what they own is the same when the garbage collectors are done, after each operation.
func TestGarbage(t *testing.T) {
	const patience = 20 * time.Second
	real := newRealServer(t, sandbox.Options{Controllers: []string{"garbage-collector-controller"}, DisablePods: true})
	ours := newOurs(t)
	deletions := 0
	n := max(4, *sequences/100)
	for i := range n {
		sequence := families{rand.New(rand.NewPCG(*seed, uint64(i)))}.sequence()
		var want [][]string
		model, collect := ours.startCollected(t.Context(), "fidelity")
		model.Settle = func(ctx context.Context, namespace string, _ int) error {
			if err := collect(); err != nil {
				return err
			}
			lines, err := census(ctx, model.Client, namespace)
			want = append(want, lines)
			return err
		}
		if _, err := model.Run(t.Context(), "fidelity", sequence); err != nil {
			t.Fatal(err)
		}
		server := real.Server
		server.Settle = func(ctx context.Context, namespace string, operation int) error {
			// An object without its owner is collected after all that came before it, more or less.
			if err := collected(ctx, server.Client, namespace); err != nil {
				return err
			}
			deadline := time.Now().Add(patience)
			for {
				lines, err := census(ctx, server.Client, namespace)
				if err != nil || cmp.Equal(lines, want[operation]) {
					deletions += len(members) - len(lines)
					return err
				}
				if time.Now().After(deadline) {
					return fmt.Errorf("-real +ours:\n%s", cmp.Diff(lines, want[operation]))
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
	t.Logf("%d sequences", n)
	if deletions == 0 {
		t.Error("nothing was ever deleted")
	}
}

// collected waits until the garbage collector has dealt with what is garbage now.
func collected(ctx context.Context, c client.Client, namespace string) error {
	garbage := &unstructured.Unstructured{Object: Object{}}
	garbage.SetGroupVersionKind(secrets.GroupVersionKind)
	garbage.SetNamespace(namespace)
	garbage.SetGenerateName("garbage-")
	garbage.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "00000000-0000-0000-0000-00000000dead"}})
	if err := c.Create(ctx, garbage); err != nil {
		return err
	}
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(garbage), garbage); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
}
