// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// carriers are blank objects of one Go type. A part of an object that is put into one can be copied alone, by the
// object's own DeepCopy. The zero value is ready to use, concurrently too.
type carriers struct{ pool sync.Pool }

// copyPart returns a copy of what fill puts into a blank object of the Go type of obj.
func (c *carriers) copyPart(obj client.Object, fill func(carrier reflect.Value)) client.Object {
	carrier, ok := c.pool.Get().(client.Object)
	if !ok {
		carrier = reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	}
	value := reflect.ValueOf(carrier).Elem()
	fill(value)
	copied := carrier.DeepCopyObject().(client.Object)
	value.SetZero()
	c.pool.Put(carrier)
	return copied
}
