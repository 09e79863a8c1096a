// SPDX-License-Identifier: Apache-2.0

package world

import (
	"strings"
	"time"
)

// Cloud is the state of the external system.
type Cloud struct {
	Values map[string]string
	// Created has the creation time of each key.
	Created map[string]time.Time
	// Version counts changes.
	Version int
	// Named counts the generated keys by prefix.
	Named map[string]int
	// Tokens has the keys of the values that were created with a token.
	Tokens map[string]string
}

// Set creates or replaces a value.
func (s *Cloud) Set(key, value string) {
	if old, ok := s.Values[key]; ok && old == value {
		return
	}
	if s.Values == nil {
		s.Values, s.Created = map[string]string{}, map[string]time.Time{}
	}
	if _, ok := s.Values[key]; !ok {
		s.Created[key] = time.Now()
	}
	s.Values[key] = value
	s.Version++
}

// DeleteAll deletes the values whose keys have a prefix.
func (s *Cloud) DeleteAll(prefix string) {
	for key := range s.Values {
		if strings.HasPrefix(key, prefix) {
			delete(s.Values, key)
			s.Version++
		}
	}
}
