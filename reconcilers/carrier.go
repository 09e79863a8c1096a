// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// carriers is a pool of blank objects of one Go type. To copy a part of an object, put the part into a blank object and
// call DeepCopy on it. The zero value is ready to use. It is safe for concurrent use.
type carriers struct{ pool sync.Pool }

// copyPart calls fill with a blank object of the Go type of obj and returns a deep copy of the result.
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
