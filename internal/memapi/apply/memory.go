// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory remembers what came of requests. To merge a configuration takes hundreds of microseconds, and the same few
// requests are made again and again when a scenario is run thousands of times: with the same objects, which differ in
// nothing but their resource version.
type memory struct {
	mu      sync.Mutex
	answers map[request]client.Object
}

// request is everything that an answer depends on.
type request struct {
	live, sent, manager, subresource string
	applied, force                   bool
	now                              int64
}

// maxAnswers is how many answers are kept. When there are more they are all forgotten, which is simple, and rare.
const maxAnswers = 4096

// recall returns what came of the same request before, or of answer, with the resource version of an object that is
// given.
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
	r.now = now.Unix() // times of managed fields have seconds
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
