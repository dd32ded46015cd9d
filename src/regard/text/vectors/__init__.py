"""Words as numbers, the way it is told: codes, one-hot, counts, TF-IDF, vectors that lie near where meanings do.

    character_codes(["cat", "at"])                 [[99, 97, 116], [97, 116, 0]]
    one_hot(["mat", "cat"], ["mat", "cat", "rat"]) [[1, 0, 0], [0, 1, 0]]
    bag_of_words(texts)                            Table: how often each word occurs in each text, or whether it does
    tf_idf(texts)                                  Table: counts weighed by how few texts a word is in

    vectors = Vectors.read("glove.6B.100d.txt")    GloVe, word2vec as text, word2vec binary; compressed or not
    vectors = Vectors.learn(texts)                 from texts of one's own, by the company that words keep
    vectors["cat"]; vectors.nearest("cat")
    vectors.mapped(tokenizer)                      a row for each token of a vocabulary, and how many were there
    cosine(vectors["cat"], vectors["dog"]); correlation(…)
    plane(vectors, ["cat", "dog", "oak"])          two numbers a word, for pictures; `picture` draws one

Counting and projecting are scikit-learn's, which is imported when it is first needed.
"""

from regard.text.vectors.counting import Table, bag_of_words, character_codes, one_hot, tf_idf
from regard.text.vectors.mapping import Coverage, Mapped
from regard.text.vectors.picture import picture, plane
from regard.text.vectors.vectors import Near, Vectors, correlation, cosine

__all__ = [
    "Coverage", "Mapped", "Near", "Table", "Vectors", "bag_of_words", "character_codes", "correlation", "cosine",
    "one_hot", "picture", "plane", "tf_idf",
]  # fmt: skip
