package refresh

// ClassOf gives the class of changes of a place of the schema, such as nodes[].providers[].capacity; known tells whether
// the table names it. The configuration reference is made with it.
func ClassOf(place string) (class Class, known bool) { return newClasses().of(place) }
