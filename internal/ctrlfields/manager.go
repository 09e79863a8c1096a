// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"reflect"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WrapLock replaces the lock that a manager of controller-runtime uses for leader election with the result of wrap, and
// returns it. A manager that has started keeps its lock, which is returned. The result is nil for managers without
// leader election, and for managers of other packages that do not embed one of controller-runtime.
func WrapLock(
	mgr manager.Manager, wrap func(resourcelock.Interface) resourcelock.Interface,
) resourcelock.Interface {
	if holder, ok := mgr.(lockHolder); ok {
		return holder.WrapLock(wrap)
	}
	of, ok := innermost(mgr)
	if !ok {
		return nil
	}
	mu, hasMutex := field[sync.Mutex](of, "Mutex")
	started, hasStarted := field[bool](of, "started")
	lock, hasLock := field[resourcelock.Interface](of, "resourceLock")
	if !hasMutex || !hasStarted || !hasLock {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	if *lock != nil && !*started {
		*lock = wrap(*lock)
	}
	return *lock
}

// lockHolder is a manager of another package, for tests, with leader election.
type lockHolder interface {
	WrapLock(wrap func(resourcelock.Interface) resourcelock.Interface) resourcelock.Interface
}

// innermost returns the struct of a manager. Wrappers of managers embed the wrapped manager.
func innermost(mgr manager.Manager) (reflect.Value, bool) {
	for {
		of, ok := structOf(mgr)
		if !ok {
			return reflect.Value{}, false
		}
		embedded, ok := field[manager.Manager](of, "Manager")
		if !ok || *embedded == nil {
			return of, true
		}
		mgr = *embedded
	}
}
