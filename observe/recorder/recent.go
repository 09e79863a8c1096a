// SPDX-License-Identifier: Apache-2.0

package recorder

import "container/list"

// recentUse orders objects by their last use. A use only notes its number. An object is moved when the oldest one is
// needed, which is rare. So the order among the objects that were used since then is approximate.
type recentUse struct {
	order list.List // of *use, the oldest at the back
	count uint64    // of uses
}

// use is the last use of an object.
type use struct {
	object  *object
	element *list.Element // nil if the object is not in the order
	// last is the number of the last use, and placed the number of the use for which it was moved.
	last, placed uint64
}

// touch notes a use, and adds the object if it is not in the order.
func (r *recentUse) touch(u *use) {
	r.count++
	u.last = r.count
	if u.element == nil {
		u.placed = u.last
		u.element = r.order.PushFront(u)
	}
}

func (r *recentUse) remove(u *use) {
	r.order.Remove(u.element)
	u.element = nil
}

// oldest returns an object that was not used since the order was last asked for it, or nil if there are no objects.
func (r *recentUse) oldest() *object {
	for back := r.order.Back(); back != nil; back = r.order.Back() {
		u := back.Value.(*use)
		if u.last == u.placed {
			return u.object
		}
		u.placed = u.last
		r.order.MoveToFront(back)
	}
	return nil
}
