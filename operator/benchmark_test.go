// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"runtime"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/internal/testkit/heap"
)

// BenchmarkEvent measures an event from the cache to the end of its request, without the queue and the handler.
func BenchmarkEvent(b *testing.B) {
	b.Run("change", func(b *testing.B) {
		c, obj := newCostCluster(b), (*fixture.Resource)(nil)
		objects := make([]*fixture.Resource, 0, b.N+1)
		for range b.N + 1 {
			obj = c.newObject(0)
			obj.UID = "uid"
			objects = append(objects, obj)
		}
		c.create(objects[0])
		c.reconcile(b.Context(), b, obj)
		b.ReportAllocs()
		b.ResetTimer()
		for _, changed := range objects[1:] {
			c.update(changed)
			c.reconcile(b.Context(), b, changed)
		}
		b.StopTimer()
		c.wantCalls(b, b.N+1)
	})
	b.Run("no-op", func(b *testing.B) {
		c := newCostCluster(b)
		obj := c.newObject(0)
		c.create(obj)
		c.reconcile(b.Context(), b, obj)
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			c.update(obj)
			c.reconcile(b.Context(), b, obj)
		}
		b.StopTimer()
		c.wantCalls(b, 1)
	})
	b.Run("create and delete", func(b *testing.B) {
		c := newCostCluster(b)
		objects := make([]*fixture.Resource, 0, b.N)
		for n := range b.N {
			objects = append(objects, c.newObject(n))
		}
		b.ReportAllocs()
		b.ResetTimer()
		for _, obj := range objects {
			c.create(obj)
			c.reconcile(b.Context(), b, obj)
			c.delete(obj)
			c.reconcile(b.Context(), b, obj)
		}
		b.StopTimer()
		c.wantCalls(b, 2*b.N)
	})
}

// BenchmarkQuietRecord reports the memory for a resource that was handled and does not change, without the memory of
// the cache.
func BenchmarkQuietRecord(b *testing.B) {
	const resources = 10_000
	for name, previous := range map[string]PreviousState{"full": PreviousFull, "none": PreviousNone} {
		b.Run(name, func(b *testing.B) {
			var held float64
			for range b.N {
				held += float64(heldBytes(b, previous, resources)) / resources
			}
			b.ReportMetric(held/float64(b.N), "B/record")
		})
	}
}

func heldBytes(b *testing.B, previous PreviousState, resources int) int64 {
	c := newCostCluster(b)
	c.edge.PreviousState = previous
	objects := make([]*fixture.Resource, 0, resources)
	for n := range resources {
		objects = append(objects, c.newObject(n))
	}
	for _, obj := range objects {
		c.objects[client.ObjectKeyFromObject(obj)] = obj
	}
	before := heap.InUse()
	for _, obj := range objects {
		c.create(obj)
		c.reconcile(b.Context(), b, obj)
	}
	held := heap.InUse() - before
	c.wantCalls(b, resources)
	if n := c.edge.ledger.len(); n != resources {
		b.Fatalf("%d records", n)
	}
	runtime.KeepAlive(objects)
	return held
}
