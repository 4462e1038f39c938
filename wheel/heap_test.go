package wheel_test

// A heap4 is what a wheel is compared with: a heap of four children a node, in
// one array, which knows where each task is so that any can be cancelled. It is
// the shape that the Go runtime keeps its timers in.
type heap4 struct {
	items []heapItem
	at    []int32 // by task: its place in items, or -1
	freed []int32
}

type heapItem struct {
	due  int64
	task int32
}

func (h *heap4) add(due int64) (task int32) {
	if n := len(h.freed); n > 0 {
		task = h.freed[n-1]
		h.freed = h.freed[:n-1]
	} else {
		task = int32(len(h.at))
		h.at = append(h.at, 0)
	}
	h.items = append(h.items, heapItem{due, task})
	h.up(len(h.items) - 1)
	return task
}

func (h *heap4) cancel(task int32) bool {
	i := h.at[task]
	if i < 0 {
		return false
	}
	h.remove(int(i))
	return true
}

// advance calls fire for all that is due by now.
func (h *heap4) advance(now int64, fire func(due int64, task int32)) {
	for len(h.items) > 0 && h.items[0].due <= now {
		first := h.items[0]
		h.remove(0)
		fire(first.due, first.task)
	}
}

func (h *heap4) remove(i int) {
	gone, end := h.items[i].task, len(h.items)-1
	moved := h.items[end]
	h.items = h.items[:end]
	if i < end {
		h.items[i] = moved
		h.down(i)
		if h.items[i] == moved {
			h.up(i)
		}
	}
	h.at[gone] = -1
	h.freed = append(h.freed, gone)
}

func (h *heap4) up(i int) {
	item := h.items[i]
	for i > 0 {
		parent := (i - 1) / 4
		if h.items[parent].due <= item.due {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, item)
}

func (h *heap4) down(i int) {
	item := h.items[i]
	for {
		least := -1
		for c := 4*i + 1; c <= 4*i+4 && c < len(h.items); c++ {
			if least < 0 || h.items[c].due < h.items[least].due {
				least = c
			}
		}
		if least < 0 || h.items[least].due >= item.due {
			break
		}
		h.put(i, h.items[least])
		i = least
	}
	h.put(i, item)
}

func (h *heap4) put(i int, item heapItem) {
	h.items[i] = item
	h.at[item.task] = int32(i)
}
