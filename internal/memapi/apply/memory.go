// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory caches results of requests. Merging a configuration takes hundreds of microseconds, and a scenario that runs
// thousands of times repeats the same few requests with objects that differ only in their resource version.
type memory struct {
	mu      sync.Mutex
	answers map[request]client.Object
}

// request is everything that a result depends on. The objects in it are encoded.
type request struct {
	live, sent, manager, subresource string
	applied, force                   bool
	now                              int64
}

// maxAnswers is the maximum number of cached results. The cache is cleared when it is reached.
const maxAnswers = 4096

// recall returns the cached result of a request, or that of answer, with the resource version of the given object.
func (m *memory) recall(
	r request, live, sent any, version client.Object, now time.Time, answer func() (client.Object, error),
) (client.Object, error) {
	var known bool
	if r.live, known = contentOf(live); !known {
		return answer()
	}
	if r.sent, known = contentOf(sent); !known {
		return answer()
	}
	r.now = now.Unix() // managed fields have times in seconds
	m.mu.Lock()
	remembered := m.answers[r]
	m.mu.Unlock()
	if remembered == nil {
		obj, err := answer()
		if err != nil {
			return nil, err
		}
		m.mu.Lock()
		if m.answers == nil || len(m.answers) >= maxAnswers {
			m.answers = map[request]client.Object{}
		}
		m.answers[r] = obj.DeepCopyObject().(client.Object)
		m.mu.Unlock()
		return obj, nil
	}
	obj := remembered.DeepCopyObject().(client.Object)
	if version != nil {
		obj.SetResourceVersion(version.GetResourceVersion())
	}
	return obj, nil
}

// contentOf encodes an object without its resource version.
func contentOf(value any) (string, bool) {
	if obj, ok := value.(client.Object); ok && obj != nil {
		obj = obj.DeepCopyObject().(client.Object)
		obj.SetResourceVersion("")
		value = obj
	}
	encoded, err := json.Marshal(value)
	return string(encoded), err == nil
}
