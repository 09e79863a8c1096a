// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"
)

// The actions of users.
const (
	userSpecs = iota
	userCreates
	userLabels
	userNotes
	userDeletes
	userRecreates
	userStrips
	userForces
	userReleases
	userActions
)

func (w *scheduleWorld) userAct(action int) {
	name := scheduleNames[w.pick(8)/6]
	s := w.server
	without := func(removed func(finalizer string) bool) {
		s.write(name, func(obj subject) { obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), removed)) })
	}
	w.serial++
	switch action {
	case userSpecs:
		s.write(name, func(obj subject) { *obj.wanted() = w.serial })
	case userCreates:
		w.userCreate(name)
	case userLabels:
		s.write(name, func(obj subject) { obj.SetLabels(map[string]string{"label": fmt.Sprint(w.serial)}) })
	case userNotes:
		s.write(name, func(obj subject) { *obj.note() = w.serial })
	case userDeletes:
		s.delete(name)
	case userRecreates:
		without(func(string) bool { return true })
		s.delete(name)
		w.userCreate(name)
	case userStrips:
		without(func(f string) bool { return f != foreignFinalizer })
	case userForces:
		without(func(string) bool { return true })
	case userReleases:
		without(func(f string) bool { return f == foreignFinalizer })
	}
}

func (w *scheduleWorld) userCreate(name string) {
	var finalizers []string
	if w.chance(64) {
		finalizers = []string{foreignFinalizer}
	}
	former := w.kind.former != "" && w.server.objects[name] == nil && w.chance(100)
	if former {
		finalizers = append(finalizers, w.kind.former)
	}
	w.server.create(name, finalizers...)
	if former {
		w.life(0, w.server.objects[name].GetUID()).former = true
	}
}
