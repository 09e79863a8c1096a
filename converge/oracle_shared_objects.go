// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
)

// sharedObjectsOracle checks that objects that caches have handed out without a copy are unmodified.
type sharedObjectsOracle struct{ evidence }

func (o *sharedObjectsOracle) check(of processes) {
	for i := range of.informers() {
		for _, s := range i.shared {
			if !reflect.DeepEqual(s.given, s.stored) {
				name := i.kind.Kind + " " + phrase.Name(client.ObjectKeyFromObject(s.stored))
				o.violate(Violation{
					Oracle: OracleSharedObjects, Cause: CauseCacheModified, About: name, Message: name + " of the cache was modified",
				})
				return
			}
		}
	}
}
